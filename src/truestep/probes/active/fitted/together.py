"""Evaluations on rows of a table, and a training that is scaled with the statistics of all of its rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import ScalingRead, Site
from truestep.probes.active.fitted.measured import Measured, Places, shift
from truestep.probes.active.fitted.signs import computed_at, computes_ranges, is_written
from truestep.probes.active.fitted.spread import BOUNDED, HOW
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused
from truestep.probes.variables.arrays import Held, arrays, arrays_of, as_tensor, shape_of, version_of

_MOST_BATCHES = 24
_MOST_ROWS = 256
_MOST_WIDE = 1024
_MOST_NUMBERS = 1 << 16
"""Most numbers that are read of a batch."""
_MOST_CELLS = 1 << 21
_MOST_TRIED = 24
_MOST_LOOKS = 24
"""Calls of a line that are looked up, of each loader."""
_MOST_OTHERS = 256
_MOST_FITS = 4
_FEW = 8
_LEAST_ROWS = 30
_LEAST_STEPS = 100
_LEAST_WINDOW = 4
_LEAST_COLUMNS = 2
_LEAST_TRAINED = 64
_LEAST_HITS = 20
"""Number of rows of the training to expect among those of an evaluation, if it were on the same rows."""
_FEW_HITS = 0.1
"""Largest part of these that are found: some rows can be equal."""
_MANY = 4
"""Least number of columns that count even if the statistics of the training are nearly the same."""
_LEAST_SHIFT = 0.2
_LEAST_BOUNDS = 3
"""Least number of minima and maxima that are not in the training."""
_OF_TRAINING = re.compile(r"(?:^|[^a-z])(?:train|fit)|[Tt]rain")


@dataclass(slots=True, eq=False)
class _Evaluation:
    """Rows of a table that one line is evaluated on."""

    model: int
    site: Site | None
    loader: int | None
    written: bool = False
    """Whether its results are written to a file, and nothing else is done with them: they have no targets."""
    rows: set[int] = field(default_factory=set)
    hits: int = 0


@dataclass(slots=True, eq=False)
class _Fit:
    """A table as measured that all inputs of the training are rows of, scaled with its statistics."""

    name: str
    measured: Measured
    how: str
    columns: tuple[int, ...]
    made: Site | None
    batches: int = 0
    rows: set[int] = field(default_factory=set)
    """Rows of the training."""
    earlier: set[int] = field(default_factory=set)
    """Rows of trainings before it."""
    evaluations: dict[tuple[Site | None, int | None], _Evaluation] = field(default_factory=dict)
    outside: bool = False
    """True once an evaluation is on rows that the table does not have."""

    def joint(self) -> list[_Evaluation]:
        """Return the evaluations on rows of the table that the training does not read."""
        found = []
        for one in self.evaluations.values():
            expected = len(one.rows) * len(self.rows) / self.measured.count
            apart = one.hits <= _FEW_HITS * expected and expected >= _LEAST_HITS
            if apart and len(self.rows) >= _LEAST_TRAINED and not one.written:
                found.append(one)
        return found


@dataclass(slots=True, eq=False)
class _Inputs:
    """Inputs of one form that the training of the current optimizers and the evaluations were called on."""

    trained: list[Any] = field(default_factory=list)
    earlier: list[Any] = field(default_factory=list)
    """Those of trainings before it, as of a pretraining without targets."""
    fits: list[_Fit] = field(default_factory=list)
    tried: set[tuple[Any, ...]] = field(default_factory=set)
    sums: set[float] = field(default_factory=set)
    others: list[Any] = field(default_factory=list)
    """The first rows of evaluations so far."""
    looks: dict[tuple[Site | None, int | None], int] = field(default_factory=dict)


class FittedTogether:
    """Emits `ScalingRead` at the end of a run.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._optimizers = 0
        self._inputs: dict[tuple[int, ...], _Inputs] = {}
        """Shape of a sample to the inputs."""
        self._ended: list[_Fit] = []
        """Those of optimizers before the current ones."""

    def trained(self, given: tuple[Any, ...]) -> None:
        """Handle a call of training, at a sampled step."""
        scene = self._scene
        if scene.numbers.count("optimizer") != self._optimizers:
            self._optimizers = scene.numbers.count("optimizer")
            self._end()
        rows = self._rows(given)
        if rows is None:
            return
        with self._aside(), scene.sampling.timed(None):
            inputs = self._inputs.setdefault(tuple(rows.shape[1:]), _Inputs())
            if len(inputs.trained) < _MOST_BATCHES:
                inputs.trained.append(rows.float().clone())

    def evaluated(
        self, model: int, site: Site | None, frames: list[FrameType], given: tuple[Any, ...], data: Callable[[], Any]
    ) -> None:
        """Handle a call of an evaluation.

        Args:
            model: number of the model.
            site: line of the call.
            frames: the user's frames, from the call outwards.
            given: its arguments.
            data: returns the data set of the latest batch.
        """
        rows = self._rows(given)
        inputs = self._inputs.get(tuple(rows.shape[1:])) if rows is not None else None
        if rows is None or inputs is None or not frames:
            return
        with self._aside(), self._scene.sampling.timed(None):
            first = float(rows[0].sum())
            if first in inputs.sums or len(inputs.sums) >= _MOST_OTHERS * _FEW:
                return
            inputs.sums.add(first)
            rows = rows.float().clone()
            key = site, self._scene.loader
            inputs.looks[key] = inputs.looks.get(key, 0) + 1
            if inputs.looks[key] <= _MOST_LOOKS:
                self._look(inputs, frames, data)
            for fit in inputs.fits:
                some = rows if inputs.looks[key] <= _MOST_LOOKS else rows[:_FEW]
                found = self._places(fit, some)
                if found is None:
                    fit.outside = True
                    continue
                one = fit.evaluations.setdefault(key, _Evaluation(model, site, key[1], is_written(site, frames)))
                one.rows |= set(found.rows.tolist())
                one.hits = len(one.rows & (fit.rows | fit.earlier))
            if len(inputs.others) < _MOST_OTHERS:
                inputs.others.append(rows[:_FEW].clone())

    def last(self) -> Iterator[ScalingRead]:
        """Yield the scalings that evaluations and the training share."""
        found: list[ScalingRead] = []
        with contextlib.suppress(Refused), self._aside():
            self._end()
            found = [one for fit in self._ended for one in self._events(fit)]
        yield from found

    def _end(self) -> None:
        """Handle the end of a training."""
        for inputs in self._inputs.values():
            for fit in inputs.fits:
                self._read_training(fit, inputs)
            if not any(fit.outside for fit in inputs.fits):
                self._ended += [one for one in inputs.fits if one.joint()][: _MOST_FITS - len(self._ended)]
        self._inputs = {
            shape: _Inputs(earlier=[*inputs.earlier, *inputs.trained][:_MOST_BATCHES])
            for shape, inputs in self._inputs.items()
        }

    def _events(self, fit: _Fit) -> Iterator[ScalingRead]:
        features, away = self._worth(fit)
        for one in fit.joint() if features else ():
            yield ScalingRead(
                model=one.model,
                table=fit.name,
                rows=len(one.rows),
                kind="joint",
                how=fit.how,
                features=features,
                whole=fit.name,
                fitted=True,
                shift=away,
                loader=one.loader,
                site=one.site,
                made=fit.made,
            )

    def _rows(self, given: tuple[Any, ...]) -> Any:
        """Return the first argument of a call, if it has rows or windows of numbers; else None."""
        torch = self._scene.torch
        value: Any = given[0] if given else None
        if type(value) is not torch.Tensor or value.requires_grad or value.dim() not in (2, 3) or not len(value):
            return None
        rows = as_tensor(self._scene, value) if value[0].numel() <= _MOST_WIDE else None
        if rows is None or not rows.is_floating_point() or rows[0].numel() < _LEAST_COLUMNS:
            return None
        return rows[: min(_MOST_ROWS, _MOST_NUMBERS // rows[0].numel())]

    # --- tables -----------------------------------------------------------------------------------------------------

    def _look(self, inputs: _Inputs, frames: list[FrameType], data: Callable[[], Any]) -> None:
        """Look for tables with the rows of the training so far."""
        if not inputs.trained or len(inputs.fits) >= _MOST_FITS:
            return
        shape = tuple(inputs.trained[0].shape[1:])
        held = [*arrays(self._scene, frames), *arrays_of(self._scene, data())]
        left = _MOST_TRIED
        for one in held:
            if left <= 0:
                break
            if not self._can_hold(one, shape):
                continue
            key = id(one.value), str(version_of(one.value))
            if key in inputs.tried:
                continue
            inputs.tried.add(key)
            left -= 1
            for measured in self._measured(one.value, shape):
                fit = self._fit(one, measured, inputs, frames)
                if fit is not None:
                    inputs.fits.append(fit)
                    break

    def _fit(self, one: Held, measured: Measured, inputs: _Inputs, frames: list[FrameType]) -> _Fit | None:
        """Return how a table is scaled to all inputs of the training."""
        least = 1 if measured.window else _LEAST_COLUMNS
        for how in HOW:
            found = measured.places(inputs.trained[0].flatten(1), how, least)
            if found is None or (how in BOUNDED and not computes_ranges(self._scene.sites.own_files())):
                continue
            fit = _Fit(one.name, measured, how, found.columns, computed_at(frames, one.name))
            self._read_training(fit, inputs)
            for rows in inputs.earlier:
                before = self._places(fit, rows)
                fit.earlier |= set() if before is None else set(before.rows.tolist())
            if fit.columns:
                fit.outside = bool(_OF_TRAINING.search(one.name))
                for rows in inputs.others:
                    fit.outside = fit.outside or self._places(fit, rows) is None
                return fit
        return None

    def _read_training(self, fit: _Fit, inputs: _Inputs) -> None:
        """Enter the places of inputs of the training that came since."""
        for rows in inputs.trained[fit.batches :] if fit.columns else ():
            found = self._places(fit, rows)
            if found is None:
                fit.columns, fit.outside = (), True
                return
            fit.rows |= set(found.rows.tolist())
            fit.batches += 1
        for one in fit.evaluations.values():
            one.hits = len(one.rows & (fit.rows | fit.earlier))

    def _places(self, fit: _Fit, rows: Any) -> Places | None:
        if not fit.columns:
            return None
        return fit.measured.places(rows.flatten(1), fit.how, 1, fit.columns)

    def _can_hold(self, one: Held, shape: tuple[int, ...]) -> bool:
        """Return True if an array can have the rows, or the series of the windows, of a form."""
        form = shape_of(self._scene.torch, one.value)
        if not form or len(form) > 2 or getattr(one.value, "requires_grad", False):
            return False
        columns = form[1] if len(form) == 2 else 1
        table = len(shape) == 1 and columns >= _LEAST_COLUMNS and form[0] >= _LEAST_ROWS
        return form[0] * columns <= _MOST_CELLS and (table or form[0] >= _LEAST_STEPS)

    def _measured(self, value: Any, shape: tuple[int, ...]) -> Iterator[Measured]:
        """Yield the ways in which an array can have samples of a form."""
        torch = self._scene.torch
        table = as_tensor(self._scene, value)
        if table is None or table.dtype is torch.bool:
            return
        table = table.reshape(len(table), -1)
        columns = table.shape[1]
        if len(shape) == 1 and columns >= _LEAST_COLUMNS:
            for first in dict.fromkeys((0, max(0, columns - shape[0]))):
                yield Measured(torch, table, 0, first)
        if len(table) < _LEAST_STEPS:
            return
        forms = {(shape[0], 1)} if len(shape) == 1 else {(shape[0], shape[1]), (shape[1], -shape[0])}
        for window, wide in sorted(forms):
            if _LEAST_WINDOW <= window <= len(table) // 2 and abs(wide) <= columns:
                for first in dict.fromkeys((0, columns - abs(wide))):
                    series = table[:, first : first + abs(wide)]
                    yield Measured(torch, series, window, turned=wide < 0)

    # --- the value of a fit ------------------------------------------------------------------------------------------

    def _worth(self, fit: _Fit) -> tuple[int, float]:
        """Return the number of columns, and how far the statistics of the training are from those of all rows.

        0 if they are too few to count.
        """
        torch, measured = self._scene.torch, fit.measured
        places = sorted(fit.rows)
        if not places or not fit.columns:
            return 0, 0.0
        if measured.window:
            places = list(range(places[0], places[-1] + measured.window))
        held = set().union(*(one.rows for one in fit.joint())) - fit.rows if fit.joint() else set()
        some, away, bounds = torch.tensor(places), 0.0, 0
        for column in fit.columns:
            centre, spread = measured.scale(fit.how, column)
            values = measured.column(column)
            if fit.how not in BOUNDED:
                spread = spread if fit.how != "centred" else float(values.std())
                independent = len(places) // max(1, measured.window)
                if fit.how != "robust":
                    away = max(away, shift(values[some], centre, spread, independent))
                continue
            width = float(values.amax() - values.amin())
            for bound, at in ((values.amin(), int(values.argmin())), (values.amax(), int(values.argmax()))):
                gap = float((values[some] - bound).abs().amin()) / width
                if measured.window:
                    away = max(away, gap)
                elif at in held:
                    bounds += 1
        many = len(fit.columns) >= _MANY and (fit.how not in BOUNDED or bounds >= _LEAST_BOUNDS)
        return (len(fit.columns) if many or away >= _LEAST_SHIFT else 0), away
