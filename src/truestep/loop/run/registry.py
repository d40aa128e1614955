"""The parts of a run, by name: models, optimizers, schedules, loaders and registered objects."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import BadPart, OpenWindow
from truestep.loop.inference.observed import Observed
from truestep.loop.inference.record import Record
from truestep.loop.optim.averaging import Averaging
from truestep.loop.optim.schedulers import Schedule

if TYPE_CHECKING:
    from torch import nn

    from truestep.loop.checkpoint.stateful import Stateful
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.mean import Mean
    from truestep.loop.optim.updates import Updates


class State(dict[str, Any]):
    """User values that are saved and restored with the run: `run.state.best = 0.9`.

    Local variables of a script are not: after a restart they have their initial values.

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

    def restore(self, values: dict[str, Any]) -> None:
        """Replace the values by these; lists and dicts that a program holds are changed in place."""
        _restored(self, values)


def _restored(kept: Any, values: Any) -> Any:
    """Return an object equal to `values`: `kept` itself, changed in place, if it is a container of the same kind."""
    if isinstance(kept, dict) and isinstance(values, dict):
        new = {key: _restored(kept.get(key), value) for key, value in values.items()}
        kept.clear()
        kept.update(new)
        return kept
    if type(kept) is list and type(values) is list:
        pairs = zip_longest(kept[: len(values)], values)
        kept[:] = [_restored(old, value) for old, value in pairs]
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
        """Means of `run.mean()`, created in the bodies of loops: a resumed run may lack some of them."""
        self.averaging = Averaging(self.updates)
        self.record = Record()
        self.observed = Observed()
        self.declared: dict[tuple[str, str], dict[str, Any]] = {}
        """Declared values of optimizers and schedules, by name and kind."""
        self.dropped: set[tuple[str, str]] = set()
        """Kinds and names of dropped parts: a name is not used a second time."""
        self._names: dict[int, str] = {}

    def add(self, shelf: dict[str, Any], kind: str, name: str | None, part: Any) -> str:
        """Add a part to a shelf and return its name; the default is `kind`, then `kind_2`, and so on.

        Raises:
            BadPart: the name is taken, or the same part was added before.
        """
        if name is None:
            name = self.next_name(kind, len(shelf))
        if not name or "/" in name or name.startswith("."):
            raise BadPart(
                f'"{name}" cannot name a {kind}',
                expected="expected a valid file name",
                remedy="use letters, digits and dots",
            )
        if isinstance(part, type):
            raise BadPart(
                f"run.{kind}() was given the class {part.__name__}",
                expected=f"expected an object, got {part!r}",
                remedy=f"call it: run.{kind}({part.__name__}(...))",
            )
        whole = part.scheduler if isinstance(part, Schedule) else part
        if id(whole) in self._names:
            raise BadPart(
                f'this {type(whole).__name__} belongs to the run already, as "{self._names[id(whole)]}"',
                expected="expected each part once",
                remedy=f"leave the second call of run.{kind}() out",
            )
        files = (self.models, self.averaging.shelf)  # a checkpoint has one file per model or average
        if name in shelf or (any(shelf is one for one in files) and any(name in one for one in files)):
            raise BadPart(
                f'there is a {kind} called "{name}" already',
                expected=f"expected a new name beside {sorted(shelf) or sorted(self.models)}",
                remedy=f'pass another name="..." for this {kind}',
            )
        shelf[name] = part
        self._names[id(whole)] = name
        return name

    def next_name(self, kind: str, present: int) -> str:
        """Return the default name of a part: "optimizer", "optimizer_2", ...; dropped parts count.

        Args:
            kind: of the part.
            present: number of parts of this kind in the run.
        """
        number = present + sum(kind == other for other, _ in self.dropped) + 1
        return kind if number == 1 else f"{kind}_{number}"

    def drop(self, part: Any) -> None:
        """Remove a part from the run, an optimizer together with its schedules.

        Raises:
            BadPart: it does not belong to the run.
            OpenWindow: gradients of the optimizer wait for an update.
        """
        updates = next((updates for updates in self.updates.values() if updates.optimizer is part), None)
        if updates is not None:
            if updates.window.is_open:
                raise OpenWindow(
                    f'"{updates.name}" was dropped while gradients wait for its update',
                    expected="expected a closed window",
                    remedy="call run.flush() before run.drop() to update with these gradients, or run.discard()",
                )
            for schedule in list(updates.schedules):
                self.drop(schedule.scheduler)
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
            expected="expected a model, an optimizer, a schedule, an average or a registered object of the run",
            remedy="pass the result of run.model(), run.optimizer(), run.scheduler(), run.ema() or run.register()",
        )

    def _forget(self, shelf: dict[str, Any], kind: str, name: str, part: Any) -> None:
        held = shelf.pop(name)
        for one in (held, part):
            self._names.pop(id(one), None)
        self.dropped.add((kind, name))

    def loader_name(self, name: str | None, *, in_epoch: bool) -> str:
        """Return the name of a loader: "loader", "loader_2", ... if none is given.

        Raises:
            BadPart: no name was given in the body of an epoch, where a resumed run would count differently.
        """
        if name is not None:
            return name
        if in_epoch:
            raise BadPart(
                "a loader without a name was created in the body of an epoch",
                expected="expected a name: a resumed run starts in a later epoch, and finds its position by name",
                remedy='pass a different name in each epoch: run.loader(..., name=f"train-{epoch}")',
            )
        return "loader" if not self.loaders else f"loader_{len(self.loaders) + 1}"

    def remove_loader(self, name: str) -> None:
        """Remove a loader that is not read again."""
        self._names.pop(id(self.loaders.pop(name)), None)

    def end_workers(self) -> None:
        """End the workers of every loader; a loader that is read again starts new ones."""
        for loader in self.loaders.values():
            loader.close()
