"""Contents of a run's checkpoints, and the order of restoring them.

Weights are loaded when a model is passed to the run, so that an average or a copy built from it is correct.
Everything is restored when the first loop begins, and once more where the checkpoint was made, since the body of an
epoch repeats its part before the loop: a meter is reset, a learning rate changed. Schedules come before
optimizers, because building a schedule writes learning rates into its optimizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import KeysDoNotMatch
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.comparison import apply_changes, compare, compare_parts, refuse, renew_lr, table
from truestep.loop.checkpoint.content import Content, Evaluated, stamp_of
from truestep.loop.checkpoint.declared import DeclaredChange, Facts, facts_of_loader
from truestep.loop.checkpoint.of_ranks import for_rank, own_state, rng_for
from truestep.loop.checkpoint.parts import put_back, taken_out, write_parts
from truestep.loop.checkpoint.unsaved_models import check_all_kept, warn_of_left_out
from truestep.loop.checkpoint.weight_files import source_of_weights
from truestep.loop.checkpoint.weights import load_weights
from truestep.loop.inference.observed import observed_in
from truestep.loop.optim.updates import has_groups_of, load_optimizer
from truestep.loop.process.terminal import say
from truestep.model.freeze import frozen_state, load_frozen_state
from truestep.seams.divided import gathered
from truestep.seams.wrappers import uncompiled

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from truestep.loop.checkpoint.checkpoints import Checkpoints
    from truestep.loop.log.logs import Logs
    from truestep.loop.optim.averaging import Followed
    from truestep.loop.position.carried_passes import CarriedPasses
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.registry import Parts, State


class RunState:
    """Writes the parts of a run into checkpoints, and reads them back.

    Args:
        parts: of the run.
        state: the user's own values.
        logs: truncated on resume to their length at the checkpoint.
        checkpoints: where to write; None for a run without folder, and on ranks other than 0.
        resumed: the checkpoint to start from; None for a new run.
        strategy: gathers the states of the ranks.
        device: where tensors are loaded to.
        saves: True if the run has a folder for checkpoints.
        init_from: source of the initial weights of a new run's models; None to keep their values.
        facts: the settings that results depend on, from `facts_of_settings`.
    """

    def __init__(
        self,
        parts: Parts,
        state: State,
        logs: Logs,
        checkpoints: Checkpoints | None,
        resumed: Checkpoint | None,
        strategy: Strategy,
        device: torch.device,
        *,
        saves: bool,
        init_from: str | Path | None = None,
        facts: Facts | None = None,
    ) -> None:
        self._parts = parts
        self._user = state
        self._logs = logs
        self._checkpoints = checkpoints
        self._resumed = resumed
        self._to = (
            torch.device("cpu") if strategy.shards else device
        )  # parts are taken from whole tensors one at a time
        self._facts = facts or {}
        self._evaluated: Evaluated | None = None
        self._init_from = None if init_from is None or resumed is not None else source_of_weights(init_from)
        self._strategy = strategy
        self.saves = saves
        """True if the run has a folder for checkpoints."""
        self._loaded: dict[str, Any] = {} if resumed is None else self._state_of(resumed)
        if resumed is not None:
            parts.observed.earlier = observed_in(resumed)
        if self._loaded:
            state.update(self._loaded["user"])
            self._load_series(self._loaded)

    @property
    def _is_own(self) -> bool:
        """Return True if the checkpoint is in the folder of this run, which also has its log."""
        assert self._resumed is not None
        return (
            self._checkpoints is not None and self._resumed.path.resolve().parent == self._checkpoints.folder.resolve()
        )

    @property
    def loops(self) -> dict[str, Any] | None:
        """Position and step of the stopped run, entry "loops" of its checkpoint; None for a new run."""
        return self._loaded.get("loops")

    def save(
        self, *, step: int, epoch: int, loops: dict[str, Any], rng: dict[str, Any], metric: float | None, mode: str
    ) -> None:
        """Write a checkpoint. The run is between two steps: no window is open.

        Args:
            step: number of steps.
            epoch: number of completed epochs.
            loops: positions of the loops.
            rng: random states at the beginning of the epoch and now.
            metric: determines the best checkpoint; None for no comparison.
            mode: "min" or "max".
        """
        parts, strategy = self._parts, self._strategy
        check_all_kept(parts, self._user)
        ranks = strategy.gathered(own_state(parts, loops, rng)) if strategy.world_size > 1 else []
        if self._checkpoints is None and not strategy.shards:
            return
        models, written = self._models(), None
        optimizers = {name: updates.optimizer.state_dict() for name, updates in parts.updates.items()}
        if strategy.shards:
            rows: dict[str, torch.Tensor] = {}
            optimizers = {name: self._whole(taken_out(held, name, rows)) for name, held in optimizers.items()}
            written = write_parts(strategy, self._checkpoints, step, rows)
        if self._checkpoints is None:
            return
        all_rng = [own.pop("rng") for own in ranks]
        evaluated, self._evaluated = self._evaluated, None
        if evaluated is not None and evaluated.stamp == self._stamp():
            evaluated = None  # the weights of this checkpoint are those that were evaluated
        elif evaluated is not None:
            metric = None
        state = {
            "loops": loops,
            "user": dict(self._user),
            "log_bytes": self._logs.secure(),
            "logged": dict(self._logs.last),
            "series": self._logs.state_dict(),
            "optimizers": optimizers,
            "updates": {name: updates.state_dict() for name, updates in parts.updates.items()},
            "schedules": {name: schedule.scheduler.state_dict() for name, schedule in parts.schedules.items()},
            "registered": {name: part.state_dict() for name, part in parts.registered.items()},
            "averages": {name: followed.state_dict() for name, followed in parts.averaging.shelf.items()},
            "frozen": {name: frozen_state(uncompiled(model)) for name, model in parts.models.items()},
            "means": {name: mean.state_dict() for name, mean in parts.means.items()},
            "declared": _declared(parts, self._facts),
            "starts": {name: schedule.start for name, schedule in parts.schedules.items()},
            "ranks": ranks,
        }
        self._checkpoints.save(
            step,
            epoch=epoch,
            models=models,
            state=state,
            rng=all_rng or rng,
            metric=metric,
            mode=mode,
            evaluated=None if evaluated is None or evaluated.content is None else evaluated,
            parts=written,
            documents=self._documents(),
        )

    def keep_evaluated(self, step: int, epoch: int, metric: float, mode: str) -> None:
        """Keep the weights of a metric: the checkpoint is written later, possibly after an update.

        Args:
            step: number of steps.
            epoch: the epoch under way.
            metric: metric of the current weights.
            mode: "min" or "max".
        """
        shards, checkpoints = self._strategy.shards, self._checkpoints
        if checkpoints is None and not shards:
            return
        best = checkpoints is not None and checkpoints.would_be_best(metric, mode)
        if shards:
            best = self._strategy.of_first(best)  # all ranks give their parts, or none
        models = self._models() if best else None
        if checkpoints is None:
            return
        content = None if models is None else Content.of(models, {}, (), copies=not shards, documents=self._documents())
        self._evaluated = Evaluated(step, epoch, metric, mode, content, self._stamp())

    def _documents(self) -> dict[str, str]:
        """Return the texts of a checkpoint, by file name."""
        return self._parts.record.documents() | self._parts.observed.documents()

    def _models(self) -> dict[str, Any]:
        """Return the state of each model and each average."""
        models = {name: self._whole(uncompiled(model).state_dict()) for name, model in self._parts.models.items()}
        for name, followed in self._parts.averaging.shelf.items():
            followed.average.check()
            models[name] = self._whole(followed.average.model.state_dict())
        return models

    def _whole(self, state: Any) -> Any:
        """Return a state with whole tensors, on rank 0."""
        return gathered(state, kept=self._checkpoints is not None) if self._strategy.shards else state

    def _stamp(self) -> object:
        parts = self._parts
        averages = (followed.average.model for followed in parts.averaging.shelf.values())
        return stamp_of([*parts.models.values(), *averages], (updates.applied for updates in parts.updates.values()))

    def warn_of_left_out(self) -> None:
        """Warn if an optimizer trains parameters that no checkpoint would contain."""
        warn_of_left_out(self._parts, self._user)

    def keep(self, carried: CarriedPasses) -> None:
        """Write the record of passes beside the checkpoints."""
        if self._checkpoints is not None:
            resumed = None if self._resumed is None else self._resumed.path.resolve().parent
            carried.keep_in(self._checkpoints.folder, resumed)

    def wait(self) -> None:
        """Return when everything is on the disk."""
        if self._checkpoints is not None:
            self._checkpoints.wait()

    def load_model(self, name: str, model: nn.Module) -> None:
        """Load the weights of a model: those of the checkpoint, or the initial weights of a new run."""
        if self._resumed is not None:
            if name not in self._resumed.models:
                return  # a new model, or a new name of one that is then missing
            try:
                load_weights(uncompiled(model), self._resumed, name=name, device=self._to)
            except KeysDoNotMatch as error:
                error.remedy = (
                    "resume with the model that was saved, or begin a run from the weights that fit: another out=, and "
                    f'load_weights(model, "{self._resumed.path}", partial=True) before run.model()'
                )
                raise
        elif self._init_from is not None:
            source = self._init_from
            known = isinstance(source, Checkpoint) and (name in source.models or len(source.models) > 1)
            load_weights(uncompiled(model), source, name=name if known else None, device=self._to)
            say(f"truestep: {name} begins with the weights of {getattr(source, 'path', source)}")

    def load_registered(self, name: str) -> None:
        """Load the state of a registered object, if the run is resumed."""
        if name in self._loaded.get("registered", {}):
            self._parts.registered[name].load_state_dict(self._loaded["registered"][name])

    def load_average(self, name: str, followed: Followed) -> None:
        """Load an average of weights, if the run is resumed and its checkpoint has it."""
        state = self._loaded.get("averages", {}).get(name)
        if state is not None and self._resumed is not None:
            load_weights(followed.average.model, self._resumed, name=name, device=self._to)
            followed.load_state_dict(state)

    def start_of(self, name: str, passed: int) -> int:
        """Return the step or epoch at which a schedule was added, in this process or before the resume.

        Args:
            name: name of the schedule.
            passed: number of steps or epochs so far.
        """
        start: int = self._loaded.get("starts", {}).get(name, passed)
        return start

    def restore(self, *, finally_: bool) -> dict[str, Any]:
        """Restore every part; return the random states.

        Args:
            finally_: True if the program has reached the place where the checkpoint was made, so that all parts must
                exist. Before that, the existing parts are restored.

        Raises:
            BadCheckpoint: the parts of the run differ from those of the checkpoint.
        """
        resumed, parts = self._resumed, self._parts
        assert resumed is not None
        loaded = self._state_of(resumed)  # read again: the program may have changed earlier values in place
        changes = self._changes(loaded, resumed)
        if finally_:
            changes += compare_parts(
                {
                    "model": ([*parts.models, *parts.averaging.shelf], resumed.models),
                    "optimizer": (parts.updates, self._loaded["optimizers"]),
                    "schedule": (parts.schedules, self._loaded["schedules"]),
                    "registered object": (parts.registered, self._loaded["registered"]),
                },
                {name for _, name in parts.dropped},
                resumed.path,
            )
            self._user.restore(loaded["user"])
            for name, part in parts.registered.items():
                if name in loaded["registered"]:
                    part.load_state_dict(loaded["registered"][name])
            for name, mean in parts.means.items():
                if name in loaded.get("means", {}):
                    mean.load_state_dict(loaded["means"][name])
        for name, model in parts.models.items():
            if name in resumed.models:
                self.load_model(name, model)
            if name in loaded.get("frozen", {}):
                load_frozen_state(uncompiled(model), loaded["frozen"][name])
        for name, followed in parts.averaging.shelf.items():
            self.load_average(name, followed)
        for name, schedule in parts.schedules.items():
            if name in loaded["schedules"]:
                schedule.scheduler.load_state_dict(loaded["schedules"][name])
        for name, updates in parts.updates.items():
            state = loaded["optimizers"].get(name)
            if state is not None and (finally_ or has_groups_of(updates.optimizer, state)):
                if has_groups_of(updates.optimizer, state):
                    state = put_back(state, updates.optimizer, resumed)
                load_optimizer(name, updates.optimizer, state)
                updates.load_state_dict(loaded["updates"][name])
        if finally_:
            self._begin_new_schedules(loaded)
            self._apply(changes, loaded, resumed)
        elif any(change.ends for change in changes):
            _report_changes(changes, resumed)  # no loop begins any more
        self._logs.cut(loaded["log_bytes"] if self._is_own else 0)
        self._logs.last.clear()
        self._logs.last.update(loaded["logged"])
        self._load_series(loaded)
        rng = rng_for(resumed, self._strategy.rank, self._strategy.world_size)
        if finally_:
            self._resumed, self._loaded = None, {}
        return rng

    def _state_of(self, resumed: Checkpoint) -> dict[str, Any]:
        """Return the state of a checkpoint for this rank."""
        return for_rank(resumed.state(device=None), self._strategy.rank, self._strategy.world_size, resumed.path)

    def _load_series(self, loaded: dict[str, Any]) -> None:
        """Restore alerts and early stopping, also before the first loop, where the program may call them."""
        if "series" in loaded:
            self._logs.load_state_dict(loaded["series"], step=loaded["loops"]["global_step"])

    # --- differences ---

    def _changes(self, loaded: dict[str, Any], resumed: Checkpoint) -> list[DeclaredChange]:
        """Return the declared values that differ from those of the checkpoint.

        Raises:
            BadCheckpoint: the run cannot resume with one of them.
        """
        if "declared" not in loaded:
            return []
        changes = compare(loaded["declared"], _declared(self._parts, self._facts), loaded["loops"])
        refuse(changes, resumed.path, resumed.step)
        return changes

    def _begin_new_schedules(self, loaded: dict[str, Any]) -> None:
        """Set the values of schedules that the checkpoint lacks in the groups of loaded optimizers."""
        for name, schedule in self._parts.schedules.items():
            if name in loaded["schedules"]:
                continue
            for group, built in zip(schedule.scheduler.optimizer.param_groups, schedule.groups, strict=False):
                group.update(
                    {key: value for key, value in built.items() if key in ("lr", "initial_lr") or key not in group}
                )
            renew_lr(schedule.scheduler)

    def _apply(self, changes: list[DeclaredChange], loaded: dict[str, Any], resumed: Checkpoint) -> None:
        """Apply the values that are declared differently, and print them."""
        if not changes:
            return
        parts = self._parts
        if "declared" in loaded:
            apply_changes(changes, loaded["declared"], _declared(parts, self._facts), parts.updates, parts.schedules)
            for schedule in parts.schedules.values():
                renew_lr(schedule.scheduler)
        _report_changes(changes, resumed)


def _declared(parts: Parts, settings: Facts) -> Facts:
    """Return the declared values of a run, in the form of a checkpoint."""
    return {
        "settings": settings,
        "loaders": {name: facts_of_loader(loader) for name, loader in parts.loaders.items()},
        "optimizers": {name: parts.declared[name, "optimizer"] for name in parts.updates},
        "schedules": {name: parts.declared[name, "schedule"] for name in parts.schedules},
    }


def _report_changes(changes: list[DeclaredChange], resumed: Checkpoint) -> None:
    place = f"{resumed.path}, step {resumed.step}, epoch {resumed.epoch}"
    say(f"truestep: the run goes on from {place}, with changes:\n{table(changes)}")
