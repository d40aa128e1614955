"""What belongs to a run, by name: models, optimizers, schedules, loaders and whatever the user registered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import BadPart, OpenWindow
from truestep.loop.optim.averaging import Averaging
from truestep.loop.optim.schedulers import Schedule

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from truestep.loop.checkpoint.stateful import Stateful
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.mean import Mean
    from truestep.loop.optim.updates import Updates


class State(dict[str, Any]):
    """Values of the user's that are saved and restored with the run: `run.state.best = 0.9`.

    Local variables of a script are not: after a restart they begin anew.

    Example:
        >>> state = State(patience=3)
        >>> state.patience -= 1
        >>> dict(state)
        {'patience': 2}
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"run.state has no {name!r}; it has {sorted(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def put_back(self, values: dict[str, Any]) -> None:
        """Take these values instead of those that there are; a list or dict that a program holds stays the same one."""
        _put_back(self, values)


def _put_back(kept: Any, values: Any) -> Any:
    """Return what equals `values`: `kept` itself, changed in place, where it is a container of the same kind."""
    if isinstance(kept, dict) and isinstance(values, dict):
        new = {key: _put_back(kept.get(key), value) for key, value in values.items()}
        kept.clear()
        kept.update(new)
        return kept
    if type(kept) is list and type(values) is list:
        pairs = zip_longest(kept[: len(values)], values)
        kept[:] = [_put_back(old, value) for old, value in pairs]
        return kept
    if isinstance(kept, torch.Tensor) and isinstance(values, torch.Tensor) and not kept.requires_grad:
        if (kept.shape, kept.dtype, kept.device) == (values.shape, values.dtype, values.device):
            return kept.copy_(values)
    elif hasattr(kept, "__array_interface__") and type(kept) is type(values) and hasattr(kept, "shape"):
        if kept.shape == values.shape and kept.dtype == values.dtype and kept.shape and kept.flags.writeable:
            kept[...] = values
            return kept
    return values


class Parts:
    """The named parts of one run."""

    def __init__(self) -> None:
        self.models: dict[str, nn.Module] = {}
        self.updates: dict[str, Updates] = {}
        self.schedules: dict[str, Schedule] = {}
        self.loaders: dict[str, Loader | GivenLoader] = {}
        self.registered: dict[str, Stateful] = {}
        self.means: dict[str, Mean] = {}
        """Of `run.mean()`; they come and go with the bodies of loops, so a resumed run need not have all of them."""
        self.averaging = Averaging()
        self.declared: dict[tuple[str, str], dict[str, Any]] = {}
        """What optimizers and schedules were declared with, by name and kind."""
        self.dropped: set[tuple[str, str]] = set()
        """Kinds and names of the parts that left the run; a name is not given twice."""
        self._by_optimizer: dict[int, Updates] = {}
        self._names: dict[int, str] = {}
        self._joint: dict[tuple[Updates, ...], tuple[tuple[int, ...], list[torch.nn.Parameter]]] = {}

    def add(self, shelf: dict[str, Any], kind: str, name: str | None, part: Any) -> str:
        """Put a part on a shelf under its name; the first is called `kind`, the next `kind_2` where no name is given.

        Raises:
            BadPart: the name is taken, or the same part was added before.
        """
        if name is None:
            name = self.next_name(kind, len(shelf))
        if not name or "/" in name or name.startswith("."):
            raise BadPart(
                f'"{name}" cannot name a {kind}', expected="a name that a file can have", remedy="use letters and dots"
            )
        if isinstance(part, type):
            raise BadPart(
                f"run.{kind}() was given the class {part.__name__}",
                expected=f"an object, got {part!r}",
                remedy=f"call it: run.{kind}({part.__name__}(...))",
            )
        whole = part.scheduler if isinstance(part, Schedule) else part
        if id(whole) in self._names:
            raise BadPart(
                f'this {type(whole).__name__} belongs to the run already, as "{self._names[id(whole)]}"',
                expected="each part once",
                remedy=f"leave the second call of run.{kind}() out",
            )
        files = (self.models, self.averaging.shelf)  # a checkpoint has a file for each of both
        if name in shelf or (any(shelf is one for one in files) and any(name in one for one in files)):
            raise BadPart(
                f'there is a {kind} called "{name}" already',
                expected=f"a new name beside {sorted(shelf) or sorted(self.models)}",
                remedy=f'pass another name="..." for this {kind}',
            )
        shelf[name] = part
        self._names[id(whole)] = name
        return name

    def next_name(self, kind: str, present: int) -> str:
        """Return the name of a part that was given none: "optimizer", "optimizer_2", ..., those of dropped parts too.

        Args:
            kind: of the part.
            present: how many of the kind the run has.
        """
        number = present + sum(kind == other for other, _ in self.dropped) + 1
        return kind if number == 1 else f"{kind}_{number}"

    def drop(self, part: Any) -> None:
        """Let a part leave the run, with what belongs to it: the schedules of an optimizer, the averages of a model.

        Raises:
            BadPart: it does not belong to the run.
            OpenWindow: gradients of the optimizer wait for an update.
        """
        updates = self._by_optimizer.get(id(part))
        if updates is not None and updates.optimizer is part:
            if updates.window.is_open:
                raise OpenWindow(
                    f'"{updates.name}" was dropped while gradients wait for its update',
                    expected="a closed window",
                    remedy="call run.flush() before run.drop() to update with what there is, or run.discard()",
                )
            for schedule in list(updates.schedules):
                self.drop(schedule.scheduler)
            del self._by_optimizer[id(part)]
            updates.release()
            self._forget(self.updates, "optimizer", updates.name, part)
            return
        followed = {name: held.average for name, held in self.averaging.shelf.items()}
        schedules = {name: schedule.scheduler for name, schedule in self.schedules.items()}
        shelves: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
            ("model", self.models, self.models),
            ("average", self.averaging.shelf, followed),
            ("schedule", self.schedules, schedules),
            ("part", self.registered, self.registered),
        )
        for kind, shelf, held in shelves:
            for name, one in held.items():
                if one is part:
                    for owner in self.updates.values():
                        owner.schedules = [kept for kept in owner.schedules if kept.scheduler is not part]
                    self._forget(shelf, name.partition("_")[0] if kind == "average" else kind, name, part)
                    return
        raise BadPart(
            f"this {type(part).__name__} does not belong to the run",
            expected="a model, an optimizer, a schedule, an average or a registered object of the run",
            remedy="pass what run.model(), run.optimizer(), run.scheduler(), run.ema() or run.register() returned",
        )

    def _forget(self, shelf: dict[str, Any], kind: str, name: str, part: Any) -> None:
        held = shelf.pop(name)
        for one in (held, part):
            self._names.pop(id(one), None)
        self.dropped.add((kind, name))

    def loader_name(self, name: str | None, *, in_epoch: bool) -> str:
        """Return what a loader is called: "loader", "loader_2", ... where no name is given.

        Raises:
            BadPart: no name was given in the body of an epoch, where a resumed run would count them otherwise.
        """
        if name is not None:
            return name
        if in_epoch:
            raise BadPart(
                "a loader without name was made in the body of an epoch",
                expected="a name: a resumed run enters a later epoch, and finds its place by names",
                remedy='pass a name of its own for every epoch: run.loader(..., name=f"train-{epoch}")',
            )
        return "loader" if not self.loaders else f"loader_{len(self.loaders) + 1}"

    def remove_loader(self, name: str) -> None:
        """Remove a loader that is not read again."""
        self._names.pop(id(self.loaders.pop(name)), None)

    def end_workers(self) -> None:
        """End the workers of every loader; a loader that is read again starts new ones."""
        for loader in self.loaders.values():
            loader.close()

    def add_updates(self, updates: Updates) -> None:
        """Put the updates of an optimizer on their shelf."""
        self.updates[updates.name] = updates
        self._by_optimizer[id(updates.optimizer)] = updates

    def applied(self, updates: Updates) -> None:
        """Let the averages hear that an optimizer has updated its parameters."""
        if self.averaging.shelf:
            self.averaging.applied(updates, self.updates.values())

    def of(self, optimizer: Optimizer | None) -> Updates:
        """Return the updates of an optimizer; None means the only one.

        Raises:
            BadPart: there is none, there are several, or this one was not given to the run.
        """
        if optimizer is not None:
            updates = self._by_optimizer.get(id(optimizer))
            if updates is not None:
                return updates
            raise BadPart(
                f"this {type(optimizer).__name__} does not belong to the run",
                expected=f"one of {sorted(self.updates)}" if self.updates else "an optimizer given to run.optimizer()",
                remedy="write optimizer = run.optimizer(optimizer) before the loop",
            )
        if len(self.updates) == 1:
            return next(iter(self.updates.values()))
        if not self.updates:
            raise BadPart(
                "the run has no optimizer",
                expected="an optimizer given to run.optimizer()",
                remedy="write optimizer = run.optimizer(torch.optim.AdamW(model.parameters())) before the loop",
            )
        raise BadPart(
            f"the run has {len(self.updates)} optimizers",
            expected=f"which one to update, of {sorted(self.updates)}",
            remedy="pass the one that this loss updates, or a list: run.step(loss, optimizer=[...])",
        )

    def group(self, optimizer: Optimizer | Sequence[Optimizer] | None) -> tuple[Updates, ...]:
        """Return the updates of the optimizers that one loss updates.

        Raises:
            BadPart: none, or one of them twice, or they accumulate over windows of several lengths.
        """
        if not isinstance(optimizer, list | tuple):
            return self.of(optimizer).alone  # type: ignore[arg-type]
        group = tuple([self.of(one) for one in optimizer])
        if not group or len(set(group)) < len(group):
            raise BadPart(
                f"optimizer= has {len(group)} optimizers, {len(set(group))} of them different",
                expected="each optimizer that the loss updates, once",
                remedy="pass run.step(loss, optimizer=[first, second])",
            )
        if len({updates.window.accumulate for updates in group}) > 1:
            lengths = ", ".join(f'{updates.window.accumulate} of "{updates.name}"' for updates in group)
            raise BadPart(
                "one loss was to update optimizers with windows of several lengths",
                expected=f"one number of micro-steps, got {lengths}",
                remedy="pass the same accumulate= for all of them",
            )
        return group

    def joint_parameters(self, group: tuple[Updates, ...]) -> list[torch.nn.Parameter]:
        """Return the parameters of several optimizers, in the order that the run's models have them in."""
        shape = tuple(len(updates.optimizer.param_groups) for updates in group)
        known = self._joint.get(group)
        if known is None or known[0] != shape:
            own = {id(parameter): parameter for updates in group for parameter in updates.parameters()}
            of_models = (parameter for model in self.models.values() for parameter in model.parameters())
            ordered = {id(parameter): parameter for parameter in of_models if id(parameter) in own}
            known = self._joint[group] = shape, list({**ordered, **own}.values())
        return known[1]

    @property
    def open_groups(self) -> list[tuple[Updates, ...]]:
        """The optimizers for which gradients wait, those together that the same losses update."""
        return list(dict.fromkeys(tuple(u for u in one.group if u.window.is_open) for one in self.open_windows))

    @property
    def open_windows(self) -> list[Updates]:
        """The optimizers for which gradients wait."""
        return [updates for updates in self.updates.values() if updates.window.is_open]
