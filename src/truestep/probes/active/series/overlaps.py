"""Windows of an evaluation, with next steps that are in windows of the training, after the same steps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import Site, WindowsShared
from truestep.probes.active.rows.lookup import Found
from truestep.probes.active.rows.names import stored_at
from truestep.probes.active.rows.tables import Table, keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, as_tensor, named, shape_of
from truestep.probes.variables.origins import stored_by

_LEAST_STEPS = 5
_MOST_LOOKS = 24
"""Calls of a line that are looked up, of each loader."""
_MOST_PARTS = 64
_MOST_PAIRS = 256
_LEAST_PAIRS = 20
_SAME = 0.95
"""Least share of windows with the next step as the target."""
_APART = 0.05
"""Largest share of windows of an evaluation that are windows of the training."""
_MOST_ROWS = 1 << 16


@dataclass(slots=True, eq=False)
class _Trained:
    """The smallest table with all windows of the training that were read, and their places."""

    table: Table
    name: str
    places: set[int] = field(default_factory=set)
    before: Any = None
    """Keys of all windows without their last step, once they are needed."""
    ahead: bool | None = None
    """Whether its targets are the next steps; None until it is known."""


@dataclass(slots=True, eq=False)
class _Evaluated:
    """Windows of one line, of one loader."""

    model: int
    name: str
    trained: str
    made: Site | None
    of_loader: bool
    looks: int = 0
    samples: int = 0
    shared: int = 0
    expected: float = 0.0


class WindowOverlaps:
    """Emits `WindowsShared` at the end of a run.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._optimizers = 0
        self._trained: dict[tuple[Any, ...], _Trained] = {}
        """Form of the rows to those of the training of the current optimizers."""
        self._evaluated: dict[tuple[Site | None, int | None, int, int], _Evaluated] = {}
        """Line, loader, id of the table and number of rows to the windows: one line can evaluate several parts."""

    def trained(self, found: list[Found]) -> None:
        """Handle a call of training with rows in tables."""
        if self._scene.numbers.count("optimizer") != self._optimizers:
            self._optimizers = self._scene.numbers.count("optimizer")
            self._trained.clear()
        found = [one for one in found if _has_steps(one)]
        if not found:
            return
        least = min(found, key=lambda one: one.table.rows)
        before = self._trained.get(least.form)
        if before is None or before.table.ref() is None:
            before = self._trained[least.form] = _Trained(least.table, least.name)
        if before.table.ref() is least.table.ref() and len(before.places) < _MOST_ROWS:
            before.places |= set(least.places.tolist())

    def evaluated(
        self,
        model: int,
        site: Site | None,
        frames: list[FrameType],
        found: list[Found],
        given: Any,
        data: Callable[[], Any],
    ) -> None:
        """Handle a call of an evaluation with rows in tables.

        Args:
            model: number of the model.
            site: line of the call.
            frames: the user's frames, from the call outwards.
            found: tables with all its rows.
            given: its first argument.
            data: returns the data set of the latest batch.
        """
        found = [one for one in found if _has_steps(one)]
        seen = self._trained.get(found[0].form) if found else None
        if seen is None or seen.ahead is False:
            return
        larger = [one for one in found if one.table.rows > len(one.keys)]
        least = min(larger or found, key=lambda one: one.table.rows)
        key = site, self._scene.loader, id(least.table.ref()), len(least.keys)
        known = self._evaluated.get(key)
        if len(self._evaluated) >= _MOST_PARTS if known is None else known.looks >= _MOST_LOOKS:
            return
        with self._aside(), self._scene.sampling.timed(None):
            whole, rows = as_tensor(self._scene, seen.table.ref()), as_tensor(self._scene, given)
            if whole is None or rows is None:
                return
            if seen.ahead is None:
                seen.ahead = self._is_ahead(whole, [*arrays_of(self._scene, data()), *arrays(self._scene, frames)])
            if not seen.ahead:
                return
            if known is None:
                known = self._evaluated[key] = self._named(model, frames, given, least, seen)
            known.looks += 1
            self._compare(seen, whole, rows, known)

    def last(self) -> Iterator[WindowsShared]:
        """Yield the evaluations on windows, next to those of the training."""
        for (site, loader, _, _), one in self._evaluated.items():
            yield WindowsShared(
                model=one.model,
                table=one.name,
                trained=one.trained,
                samples=one.samples,
                shared=one.shared,
                expected=one.expected,
                loader=loader if one.of_loader else None,
                site=site,
                made=one.made,
            )

    def _named(self, model: int, frames: list[FrameType], given: Any, least: Found, seen: _Trained) -> _Evaluated:
        """Return the windows of a call, by the name of its argument, or of the table or loader that a batch is from."""
        for name in named(self._scene, frames, given):
            for frame in frames:
                if isinstance(stored_by(frame, name), ast.Assign):
                    return _Evaluated(model, name, seen.name, stored_at(frames, name), of_loader=False)
        made = None if self._scene.loader is not None else stored_at(frames, least.name)
        return _Evaluated(model, least.name, seen.name, made, of_loader=self._scene.loader is not None)

    def _compare(self, seen: _Trained, whole: Any, rows: Any, known: _Evaluated) -> None:
        torch = self._scene.torch
        keys = keys_of(self._scene, rows)
        inside = seen.table.has(torch, keys)
        some, share = None, 1.0
        if float(inside.float().mean()) > _APART:  # one table with the rows of both
            places = torch.tensor(sorted(seen.places))
            if float(torch.isin(keys, seen.table.keys[places]).float().mean()) > _APART:
                known.samples += len(rows)  # windows of the training
                return
            some, share = places, len(places) / max(1, len(whole) - len(rows))
        if seen.before is None:
            seen.before = keys_of(self._scene, whole[:, :-1])
        before, after = seen.before if some is None else seen.before[some], keys_of(self._scene, rows[:, 1:])
        varied = rows.flatten(1).amin(1) < rows.flatten(1).amax(1)
        known.samples += len(rows)
        known.shared += int((torch.isin(after, before) & varied).sum())
        known.expected += share * len(rows)

    def _is_ahead(self, whole: Any, held: list[Held]) -> bool:
        """Return True if the targets of windows are their next steps, by a series of which most windows are known."""
        torch, scene = self._scene.torch, self._scene
        before, after = keys_of(scene, whole[:, :-1]), keys_of(scene, whole[:, 1:])
        ordered, order = before.sort()
        at = torch.searchsorted(ordered, after).clamp(max=len(ordered) - 1)
        rows = (ordered[at] == after).nonzero().flatten()
        if len(rows) < _LEAST_PAIRS:
            return False
        rows = rows[:: max(1, len(rows) // _MOST_PAIRS)]
        steps = whole[order[at[rows]], -1].reshape(len(rows), -1).float()
        for one in held:
            shape = shape_of(torch, one.value)
            if shape[:1] != (len(whole),) or len(shape) > 3 or "float" not in str(one.value.dtype):
                continue
            targets = as_tensor(scene, one.value)
            if targets is None or targets.shape == whole.shape:
                continue
            first = targets[rows].reshape(len(rows), -1)[:, : steps.shape[1]].float()
            for column in range(first.shape[1]):
                same = (steps == first[:, column : column + 1]).float().mean(0)
                if float(same.amax()) >= _SAME:
                    return True
        return False


def _has_steps(found: Found) -> bool:
    """Return True for rows of numbers that can be windows: (steps) or (steps, columns)."""
    shape = found.form[0]
    return bool(found.form[1]) and not found.window and len(shape) in (1, 2) and shape[0] >= _LEAST_STEPS
