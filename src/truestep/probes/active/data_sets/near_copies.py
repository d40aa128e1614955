"""Samples of an evaluation that were made out of samples of the training: copies with noise, and points between two."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import CopiesEvaluated, Site
from truestep.probes.active.rows.names import stored_at
from truestep.probes.active.rows.tables import keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, as_tensor, shape_of
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.active.rows.lookup import Found

_LEAST_ROWS = 40
_MOST_ROWS = 50_000
_MOST_ARRAYS = 8
_MOST_SOURCES = 3
_MOST_LOOKS = 4
_LEAST_BATCH = 8
_LEAST_CLASSES = 2
_MOST_CLASSES = 10
_LEAST_OF_CLASS = 20
_SOME = 96
"""Rows of a class that are compared."""
_LEAST_MEASURED, _MOST_MEASURED = 4, 64
_VARIED = 0.3
"""Least share of different values in a column of measured numbers, of which copies repeat some."""
_NEIGHBOURS = 24
_MOST_COPIES = 400
_JUMP = 3.0
"""The next sample after the copies is farther away by this factor."""
_ALIKE = 0.9
"""Largest share of rows of the training in a table that is one of an evaluation."""
_ON_LINE = 1 - 5e-7
"""Least cosine of the directions from a point to two others on a line with it."""
_MOST_ON_LINE = 0.7
"""Largest share of near samples on a line: more are a class that is a line itself."""
_TINY = 1e-3


class _Class(NamedTuple):
    """Rows of one class: their number, how many were compared, and how many of these were made out of others."""

    number: int
    compared: int
    near: int
    between: int
    clumps: int
    """Number of groups of copies among them."""


class NearCopies:
    """Emits `CopiesEvaluated`, once for each array of an evaluation.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._trained: list[Ref] = []
        """Arrays that batches of the training came from, the latest last."""
        self._met: list[Ref] = []
        """Arrays of evaluations that were compared."""
        self._looks: dict[Site | None, int] = {}
        """Lines to their evaluations that were looked at."""

    def trained(self, given: tuple[Any, ...], found: list[Found], data: Any) -> None:
        """Record the array that a batch of the training came from.

        Args:
            given: arguments of the call.
            found: tables with the rows of the call.
            data: the data set of the latest batch; None without one.
        """
        if len(self._trained) >= _MOST_ARRAYS or not self._is_due(data, found):
            return
        sources = self._sources(given, found, data, ())
        for one in sources[:1]:
            if all(ref() is not one.value for ref in self._trained):
                self._trained.append(Ref(one.value))

    def evaluated(
        self,
        model: int,
        site: Site | None,
        frames: list[FrameType],
        given: tuple[Any, ...],
        found: list[Found],
        data: Any,
    ) -> None:
        """Compare the array of an evaluation with that of the training.

        Args:
            model: number of the model.
            site: line of the call.
            frames: the user's frames.
            given: arguments of the call.
            found: tables with the rows of the call.
            data: the data set of the latest batch; None without one.
        """
        scene = self._scene
        trained = [value for ref in self._trained if (value := ref()) is not None]
        if not trained or len(self._met) >= _MOST_ARRAYS or self._looks.get(site, 0) >= _MOST_LOOKS:
            return
        self._looks[site] = self._looks.get(site, 0) + 1
        for one in self._sources(given, found, data, frames):
            if any(one.value is value for value in (*trained, *(ref() for ref in self._met))):
                continue
            self._met.append(Ref(one.value))
            like = [value for value in trained if _form(scene, value) == _form(scene, one.value)]
            with self._aside(), scene.sampling.timed(None):
                held = [*arrays(scene, frames), *arrays_of(scene, data)]
                event = self._compared(one.value, like[-1], held) if like else None
                name = one.name
                if name.startswith("dataset."):
                    name = next((other.name for other in held if self._is_equal(one.value, other.value)), "")
            if event is not None:
                made = stored_at(frames, name) if name else None
                scene.emit(CopiesEvaluated(model=model, table=name, site=site, made=made, **event))
                return

    def _is_due(self, data: Any, found: list[Found]) -> bool:
        """Return True for the first batch of a data set, and for batches of tables that are known."""
        return bool(found) if data is None else self._scene.numbers.of("near copies", data)[1]

    def _sources(
        self, given: tuple[Any, ...], found: list[Found], data: Any, frames: Sequence[FrameType]
    ) -> list[Held]:
        """Return the arrays with all rows of a call, and more of them, the smallest first; in an evaluation also equal
        ones, as the array itself may be given to the model.
        """
        torch, scene = self._scene.torch, self._scene
        shape = shape_of(torch, given[0]) if given and type(given[0]) is torch.Tensor else ()
        if len(shape) != 2 or not shape[0] >= _LEAST_BATCH or not given[0].is_floating_point():
            return []
        tables = [one.table for one in found if not one.window and one.form[0] == shape[1:] and one.form[1]]
        held = [Held(one.name, one.owner, value) for one in tables if (value := one.ref()) is not None]
        if not any(len(one.value) > shape[0] for one in held):
            with self._aside():
                held += self._with_rows(given[0], [*arrays_of(scene, data), *arrays(scene, list(frames))])
        usable = [one for one in held if len(one.value) > shape[0] or frames]
        return sorted(usable, key=lambda one: (len(one.value) == shape[0], len(one.value)))[:_MOST_SOURCES]

    def _with_rows(self, batch: Any, held: list[Held]) -> list[Held]:
        """Return the arrays with all rows of a batch."""
        torch, keys = self._scene.torch, keys_of(self._scene, batch)
        found = []
        for one in held if keys is not None else ():
            alike = shape_of(torch, one.value)[1:] == tuple(batch.shape[1:]) and "float" in str(one.value.dtype)
            if alike and len(batch) <= len(one.value) <= _MOST_ROWS:
                others = keys_of(self._scene, one.value)
                if others is not None and bool(torch.isin(keys, others).all()):
                    found.append(one)
        return found

    def _is_equal(self, value: Any, other: Any) -> bool:
        torch = self._scene.torch
        if value is other or shape_of(torch, value) != shape_of(torch, other):
            return False
        keys, others = keys_of(self._scene, value), keys_of(self._scene, other)
        return keys is not None and others is not None and torch.equal(keys, others)

    def _compared(self, evaluated: Any, trained: Any, held: list[Held]) -> dict[str, Any] | None:
        torch = self._scene.torch
        rows, train = as_tensor(self._scene, evaluated), as_tensor(self._scene, trained)
        if rows is None or train is None or len(rows) > _MOST_ROWS:
            return None
        if not min(len(rows), len(train)) >= _LEAST_ROWS or len(train) > _MOST_ROWS:
            return None
        keys, others = keys_of(self._scene, rows), keys_of(self._scene, train)
        if keys is None or others is None or float(torch.isin(others, keys).float().mean()) > _ALIKE:
            return None  # an array with the rows of the training as well
        measured = [
            at
            for at in range(min(train.shape[1], _MOST_MEASURED))
            if bool(train[:, at].isfinite().all()) and _is_measured(train[:, at])
        ]
        if len(measured) < _LEAST_MEASURED or not bool(rows[:, measured].isfinite().all()):
            return None
        rows, train = rows[:, measured].double(), train[:, measured].double()
        centre, spread = train.mean(0), train.std(0).clamp(min=1e-12)
        rows, train = (rows - centre) / spread, (train - centre) / spread
        for labels in self._labels(held, len(rows)):
            classes = [
                _measured(torch, rows[labels == number], train)
                for number in labels.unique()
                if int((labels == number).sum()) >= _LEAST_OF_CLASS
            ]
            if len(classes) < _LEAST_CLASSES:
                continue
            made = max(classes, key=lambda one: max(one.near, one.between) / one.compared)
            free = min(classes, key=lambda one: max(one.near, one.between) / one.compared)
            between = made.between > made.near
            return {
                "samples": made.number,
                "compared": made.compared,
                "hits": made.between if between else made.near,
                "clumps": made.clumps,
                "others": free.number,
                "free": free.compared,
                "free_hits": max(free.between, free.near),
                "between": between,
            }
        return None

    def _labels(self, held: list[Held], rows: int) -> list[Any]:
        """Return the columns with a class for each row that variables hold."""
        torch, found = self._scene.torch, []
        for one in held:
            if shape_of(torch, one.value) not in ((rows,), (rows, 1)):
                continue
            column = as_tensor(self._scene, one.value)
            if column is not None and _LEAST_CLASSES <= len(column.unique()) <= _MOST_CLASSES:
                found.append(column.reshape(-1))
        return found


def _form(scene: Scene, value: Any) -> tuple[int, ...]:
    return shape_of(scene.torch, value)[1:]


def _is_measured(column: Any) -> bool:
    return len(column.unique()) >= _VARIED * len(column)


def _measured(torch: Any, rows: Any, train: Any) -> _Class:
    """Return how many rows of a class have copies, or lie on a line with two samples of the training."""
    number = len(rows)
    rows = rows[:: max(1, number // _SOME)][:_SOME]
    far = torch.cdist(rows, train, compute_mode="donot_use_mm_for_euclid_dist")
    far, at = far.topk(min(_MOST_COPIES, len(train) // 2), largest=False)
    floor = _TINY * far[:, -1:]
    jumps, last = (far[:, 1:] / far[:, :-1].clamp(min=floor)).max(1)
    near = jumps >= _JUMP
    radius = far.gather(1, last[:, None])
    apart = torch.cdist(rows, rows) > 2 * radius
    clumps = int((apart | torch.triu(torch.ones_like(apart))).all(1)[near].sum())
    between = 0
    for row, places in zip(rows, at[:, :_NEIGHBOURS], strict=True):
        ways = train[places].unique(dim=0) - row
        lengths = ways.norm(dim=1, keepdim=True)
        ways = (ways / lengths)[lengths[:, 0] > floor.mean()]
        aligned = (ways @ ways.T).abs() > _ON_LINE
        between += bool(1 < aligned.sum(1).max() <= _MOST_ON_LINE * len(ways)) if len(ways) else 0
    return _Class(number, len(rows), int(near.sum()), between, clumps)
