"""Series with the windows of an evaluation: scaled with their own statistics, or together with the training."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeGuard

from truestep import source
from truestep.events import ScalingRead, Site
from truestep.probes.active.rows.scaling import made_at
from truestep.probes.active.series.sources import Source, holds, sources_of, windows_of
from truestep.probes.active.series.statistics import Statistics, statistics_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, named

_MOST_LOOKS = 5
"""Calls of training that are looked up, of each form of input."""
_LEAST_LOOKS = 2
_MOST_CALLS = 24
"""Calls of evaluations that are looked up, of each form."""
_MOST_PARTS = 4

_DIVIDING = re.compile(
    r"\b(?:fit_)?transform\(|-\s*[\w.]+(?:\([^()]*\))?\)\s*/\s*\(?[\w.]*(?:std|sigma|scale|deviation)"
)
"""Lines that scale data; a deviation can also be that of a figure that is printed."""
_SCALING = re.compile(r"\b(?:nan)?(?:std|var|std_mean|var_mean|fit_transform)\(|\bStandardScaler\b")


@dataclass(slots=True, eq=False)
class _Part:
    """A series of an evaluation."""

    model: int
    name: str
    statistics: Statistics
    cut: bool
    loader: int | None
    site: Site | None
    made: Site | None
    standard: set[int]
    emitted: bool = False


@dataclass(slots=True, eq=False)
class _Trained:
    """Windows that the training read, of one form, and the series with all of them."""

    looks: int = 0
    calls: dict[tuple[Site | None, int | None], int] = field(default_factory=dict)
    """Line and loader of evaluations to the number of calls that were looked up."""
    read: set[float] = field(default_factory=set)
    """Sums of their first windows."""
    windows: list[Any] = field(default_factory=list)
    sources: dict[tuple[str, int, bool], Statistics | None] = field(default_factory=dict)
    """Name and length of a series, and whether it was put together from windows, to its statistics."""
    parts: list[_Part] = field(default_factory=list)
    known: set[tuple[str, int, int | None]] = field(default_factory=set)


class SeriesScalings:
    """Emits `ScalingRead` for series that windows were cut from.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._optimizers = 0
        self._seen: dict[tuple[int, ...], _Trained] = {}
        """Shape of a window to the training of the current optimizers."""

    def trained(self, frame: FrameType, given: tuple[Any, ...], data: Callable[[], Any]) -> None:
        """Handle a call of training, at a sampled step.

        Args:
            frame: torch's frame of it.
            given: its arguments.
            data: returns the data set of the latest batch.
        """
        scene, torch = self._scene, self._scene.torch
        if scene.numbers.count("optimizer") != self._optimizers:
            self._optimizers = scene.numbers.count("optimizer")
            self._seen.clear()
        if not given or type(given[0]) is not torch.Tensor:
            return
        seen = self._seen.setdefault(tuple(given[0].shape[1:]), _Trained())
        if seen.looks >= _MOST_LOOKS or (seen.looks and not seen.sources):
            return
        with self._aside(), scene.sampling.timed(None):
            windows = windows_of(scene, given[0])
            if not windows:
                return
            seen.looks += 1
            held = self._held(scene.sites.users(frame), data)
            found = {}
            for source in sources_of(scene, windows, held):
                name = source.held.name, len(source.values), source.cut
                known = seen.sources.get(name)
                found[name] = known if known is not None else statistics_of(torch, source.values)
            common = {name: one for name, one in found.items() if seen.looks == 1 or _is_known(name, seen)}
            seen.sources = common
            seen.windows += windows

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
        scene = self._scene
        batch = given[0] if given and type(given[0]) is scene.torch.Tensor else None
        seen = self._seen.get(tuple(batch.shape[1:])) if batch is not None else None
        key = site, scene.loader
        if seen is None or not seen.sources or seen.looks < _LEAST_LOOKS or seen.calls.get(key, 0) >= _MOST_CALLS:
            return
        with self._aside(), scene.sampling.timed(None):
            windows = windows_of(scene, batch)
            first = float(windows[0].sum()) if windows else 0.0
            if first in seen.read:  # as in the epoch before
                return
            seen.read.add(first)
            seen.calls[key] = seen.calls.get(key, 0) + 1
            found = list(sources_of(scene, windows, self._held(frames, data))) if windows else []
            apart = [one for one in found if not any(holds(one.values, window) for window in seen.windows)]
            if apart:
                self._judge(model, site, frames, min(apart, key=_preference), seen)

    def _held(self, frames: list[FrameType], data: Callable[[], Any]) -> list[Held]:
        return [*arrays_of(self._scene, data()), *arrays(self._scene, frames)]

    def _judge(self, model: int, site: Site | None, frames: list[FrameType], source: Source, seen: _Trained) -> None:
        torch = self._scene.torch
        key = source.held.name, len(source.values), self._scene.loader
        if key in seen.known or len(seen.parts) >= _MOST_PARTS:
            return
        seen.known.add(key)
        statistics = statistics_of(torch, source.values)
        if statistics is None or _by_one_function(made_at(frames, {id(source.held.value), source.held.owner})):
            return
        name = next(named(self._scene, frames, source.held.value), source.held.name)
        made = made_at(frames, {id(source.held.value), source.held.owner})
        standard = statistics.standard(torch)
        part = _Part(model, name, statistics, source.cut, self._scene.loader, site, made, standard)
        seen.parts.append(part)
        for trained, one in seen.sources.items():
            if one is not None and self._own(part, one, trained[0]):
                return
        for trained, one in seen.sources.items():
            if one is not None and not trained[2] and self._unlike_another(one, trained[0], seen):
                return
        for trained, one in seen.sources.items():
            if one is not None and _scales(frames) and self._together(one, trained[0], seen, _divides(frames)):
                return

    def _own(self, part: _Part, trained: Statistics, name: str) -> bool:
        """Emit a series that is scaled with its own statistics, as that of the training is.

        One with as many steps as the training is that series in another form: reversed, negated, louder, permuted.
        """
        torch, one = self._scene.torch, part.statistics
        if one.sums.shape != trained.sums.shape or one.count == trained.count:
            return False
        centred = one.centred(torch).keys() & trained.standard(torch)
        ranged = (one.ranged & trained.ranged & one.varied & trained.varied).nonzero().flatten().tolist()
        both = one.grouped | trained.grouped
        ranged = [at for at in ranged if not bool(both[at])]
        if not centred and not ranged:
            return False
        how = "range" if not centred else "standard" if part.standard & centred else "centred"
        self._tell(part, "own", how, len(centred or ranged), name)
        return True

    def _unlike_another(self, trained: Statistics, name: str, seen: _Trained) -> bool:
        """Emit series that are scaled with their own statistics, next to another evaluation that is not.

        The training can be scaled with the statistics of some of its steps, such as those without faults.
        """
        torch = self._scene.torch
        whole = [one for one in seen.parts if not one.cut and one.statistics.sums.shape == trained.sums.shape]
        plain = [one for one in whole if not one.standard and one.statistics.prepared() and _is_even(one.statistics)]
        if trained.centred(torch) or not trained.prepared() or not _is_even(trained) or not plain:
            return False
        own = [one for one in whole if one.standard and len(one.standard) == int(one.statistics.varied.sum())]
        for one in own:
            if not one.emitted:
                self._tell(one, "own", "standard", len(one.standard), name)
        return bool(own)

    def _together(self, trained: Statistics, name: str, seen: _Trained, divides: bool) -> bool:
        """Emit series that are scaled together with that of the training, in the order of their first evaluation."""
        torch = self._scene.torch
        parts = [one for one in seen.parts if one.statistics.sums.shape == trained.sums.shape and not one.emitted]
        for size in range(1, len(parts) + 1):
            for some in itertools.permutations(parts, size):
                if parts[-1] not in some:
                    continue
                whole = trained
                for one in some:
                    whole = whole.joined(torch, one.statistics)
                standard = whole.standard(torch) - trained.standard(torch)
                standard -= {at for one in some for at in one.standard}
                if standard:
                    shift = trained.shift(standard) if divides else 0.0
                    for one in some:
                        self._tell(one, "joint", "standard", len(standard), name, shift)
                    return True
        return False

    def _tell(self, part: _Part, kind: str, how: str, features: int, trained: str, shift: float = 0.0) -> None:
        part.emitted = True
        self._scene.emit(
            ScalingRead(
                model=part.model,
                table=part.name,
                rows=part.statistics.count,
                trained=trained,
                kind=kind,
                how=how,
                features=features,
                series=True,
                shift=shift,
                loader=part.loader,
                site=part.site,
                made=part.made,
            )
        )


def _scales(frames: list[FrameType]) -> bool:
    """Return True if a file of the program computes deviations, or fits a scaler: data can be published as scaled."""
    paths = {frame.f_code.co_filename for frame in frames}
    return any(_SCALING.search(line) for path in paths for line in source.read(path).lines)


def _divides(frames: list[FrameType]) -> bool:
    """Return True if a file of the program divides by a deviation, or transforms with a fitted scaler."""
    paths = {frame.f_code.co_filename for frame in frames}
    return any(_DIVIDING.search(line) for path in paths for line in source.read(path).lines)


def _by_one_function(made: Site | None) -> bool:
    """Return True if a series is what a function returns that the file calls again: each is scaled alone on purpose."""
    calls = [] if made is None else [one for one in ast.walk(source.parsed(made.path) or ast.Pass()) if _is_plain(one)]
    names = [one.func.id for one in calls]
    here = [
        one.func.id for one in calls if made is not None and (one.lineno, one.col_offset) == (made.line, made.column)
    ]
    return any(names.count(name) > 1 for name in here)


def _is_plain(node: ast.AST) -> TypeGuard[Any]:
    """Return True for a call of a function by its name, with variables only."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and bool(node.args)
    return called and all(isinstance(one, ast.Name) for one in node.args)  # type: ignore[attr-defined]


def _is_known(name: tuple[str, int, bool], seen: _Trained) -> bool:
    return name in seen.sources


def _preference(source: Source) -> tuple[bool, int]:
    """Return the order of series: first those that variables hold as a whole, then the shortest."""
    return source.cut, len(source.values)


def _is_even(statistics: Statistics) -> bool:
    """Return True if no part of a series has the statistics of all."""
    return not bool((statistics.grouped & statistics.varied).any())
