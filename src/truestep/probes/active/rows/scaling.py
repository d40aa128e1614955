"""Scaling of the tables of an evaluation: with its own statistics, or with those of all samples."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import OrderRead, ScalingRead, Site
from truestep.probes.active.fitted.column_order import Ranks, order_of, ranks_of
from truestep.probes.active.fitted.domains import of_two_domains
from truestep.probes.active.fitted.signs import computes_ranges, is_written
from truestep.probes.active.rows.lookup import Found
from truestep.probes.active.rows.moments import View, views_of
from truestep.probes.active.rows.tables import Table
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import as_tensor, version_of
from truestep.probes.variables.origins import stored_by
from truestep.seams.refs import Ref

_MOST_SEEN = 1 << 16
_MOST_TABLES = 8
_MOST_PARTS = 4
_MOST_COMPARED = 32
_LEAST_HITS = 20
"""Number of rows of the training to expect among those of an evaluation, if it were on the same rows."""
_FEW = 8
_APART = 0.05
"""Largest share of rows of an evaluation that are in a table of the training: a few rows can be equal."""
_HALF = 0.5
_LEAST_JOINT = 3
"""Least number of minima and maxima that the training does not reach."""


@dataclass(slots=True)
class _Part:
    """The table of an evaluation with other rows than those of the training."""

    model: int
    name: str
    table: Table
    views: list[View]
    loader: int | None
    site: Site | None
    made: Site | None
    emitted: str = ""
    """How it is scaled, as it was emitted."""


@dataclass(slots=True)
class _Seen:
    """Rows of one form that the training was read on, and its tables."""

    keys: set[int] = field(default_factory=set)
    tables: dict[int, tuple[str, Table]] = field(default_factory=dict)
    """Id of an array to its name and rows."""
    views: dict[int, tuple[str, list[View]]] = field(default_factory=dict)
    """The same to its name and statistics, which outlive it."""
    ranks: dict[int, Ranks] = field(default_factory=dict)
    """The same to the values of its columns in order."""
    parts: dict[tuple[int, int], _Part] = field(default_factory=dict)
    """Number of rows of a table of the evaluations, and sum of their keys, to the table."""
    called: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Id of an array with rows of both to the rows of evaluations that the training has read, and those to expect."""
    emitted: set[int] = field(default_factory=set)
    compared: set[tuple[int, int]] = field(default_factory=set)
    """The same for all tables of evaluations so far."""
    ordered: bool = False
    """Whether an evaluation on other rows of a table of the training was emitted."""


class Scalings:
    """Emits `ScalingRead`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._optimizers = 0
        self._seen: dict[tuple[Any, ...], _Seen] = {}
        """Form of the rows to those of the training of the current optimizers."""
        self._views: dict[int, tuple[Ref, Any, list[View]]] = {}

    def trained(self, found: list[Found]) -> None:
        """Handle a call of training with rows in tables."""
        if self._scene.numbers.count("optimizer") != self._optimizers:
            self._optimizers = self._scene.numbers.count("optimizer")
            self._seen.clear()
        found = [one for one in found if _is_sample(one)]
        if not found:
            return
        least = min(found, key=lambda one: one.table.rows)
        seen = self._seen.setdefault(least.form, _Seen())
        if len(seen.keys) < _MOST_SEEN:
            seen.keys.update(least.keys.tolist())
        if len(seen.tables) < _MOST_TABLES:
            seen.tables[id(least.table.ref())] = least.name, least.table

    def evaluated(self, model: int, site: Site | None, frames: list[FrameType], found: list[Found]) -> None:
        """Handle a call of an evaluation with rows in tables.

        Args:
            model: number of the model.
            site: line of the call.
            frames: the user's frames, from the call outwards.
            found: tables with all its rows.
        """
        found = [one for one in found if _is_sample(one)]
        seen = self._seen.get(found[0].form) if found else None
        if seen is None or not seen.tables:
            return
        with self._aside(), self._scene.sampling.timed(None):
            apart = [one for one in found if self._shared(seen, one.table.keys) <= _APART]
            largest = max(apart, key=lambda one: one.table.rows, default=None)
            if largest is None:
                self._of_one_table(model, site, frames, found, seen)
            elif self._scene.loader is None or largest.table.rows > len(largest.keys) or len(apart) > 1:
                self._of_two_tables(model, site, frames, found, largest, seen)

    def _shared(self, seen: _Seen, keys: Any) -> float:
        """Return the share of rows that are in the tables of the training."""
        inside = self._scene.torch.zeros(len(keys), dtype=self._scene.torch.bool)
        for _, table in seen.tables.values():
            inside |= table.has(self._scene.torch, keys)
        return float(inside.float().mean())

    # --- training and evaluation read rows of one table --------------------------------------------------------

    def _of_one_table(
        self, model: int, site: Site | None, frames: list[FrameType], found: list[Found], seen: _Seen
    ) -> None:
        least = min(found, key=lambda one: (not self._holds_training(one, seen), one.table.rows))
        number = id(least.table.ref())
        hits, expected = seen.called.get(number, (0, 0.0))
        rows = set(least.keys.tolist())
        hits += len(rows & seen.keys)
        expected += len(rows) * len(seen.keys) / max(1, least.table.rows)
        seen.called[number] = hits, expected
        if not seen.ordered and expected >= _FEW and hits <= _APART * expected:  # held-out rows of the same table
            seen.ordered = True
            part = _Part(model, least.name, least.table, [], None, site, None)
            self._tell_order(part, math.prod(least.form[0]), 0)
        whole = len(rows) >= least.table.rows
        if hits or whole or expected < _LEAST_HITS or number in seen.emitted or not self._holds_training(least, seen):
            return
        views = self._views_of(least.table)
        if not views:
            return
        seen.emitted.add(number)
        how, features = _scaled(views)
        if not self._is_meant(how, site, frames):
            features = 0
        self._scene.emit(
            ScalingRead(
                model=model,
                table=least.name,
                rows=least.table.rows,
                kind="joint" if features else "",
                how=how if features else "",
                features=features,
                whole=least.name,
                loader=self._scene.loader,
                site=site,
                made=_made_at(frames, least),
            )
        )

    def _holds_training(self, one: Found, seen: _Seen) -> bool:
        torch = self._scene.torch
        return bool(one.table.has(torch, torch.tensor(sorted(seen.keys))).all())

    # --- they read two tables ----------------------------------------------------------------------------------

    def _of_two_tables(
        self, model: int, site: Site | None, frames: list[FrameType], found: list[Found], least: Found, seen: _Seen
    ) -> None:
        rows = least.table.rows, int(least.table.keys.sum())
        if rows in seen.compared or len(seen.compared) >= _MOST_COMPARED:
            return
        seen.compared.add(rows)
        views = self._views_of(least.table)
        for at, (name, table) in seen.tables.items():
            others = self._views_of(table)
            if others:
                seen.views[at] = name, others
                self._keep_ranks(at, table, seen)
        if not views or not seen.views:
            seen.compared.discard(rows)
            return
        part = _Part(model, least.name, least.table, views, self._scene.loader, site, _made_at(frames, least))
        self._compare_order(part, seen)
        if len(seen.parts) >= _MOST_PARTS:
            return
        seen.parts[rows] = part
        name, others = next(iter(seen.views.values()))
        (how, features), (same, _) = _scaled(views), _scaled(others)
        few = views[0].few()
        if not features and few == others[0].few() and (few != "range" or computes_ranges(self._own_files())):
            how = same = few
            features = len(views[0].varied) if few else 0
        if features and how == same:
            domains = self._are_of_two_domains(frames, least, seen)
            self._tell(part, "" if domains else "own", how, features, name, "", part.made)
            return
        other = _unlike(views, others)
        if other:
            self._tell(part, "unlike", other, int(views[0].varied.sum()), name, "", part.made)
            return
        for one in found:
            if one.table.rows > least.table.rows and self._holds_training(one, seen):
                how, features = _joint(self._views_of(one.table), others)
                if features and self._is_meant(how, site, frames):
                    self._tell(part, "joint", how, features, name, one.name, _made_at(frames, one))
                    return
        if not self._join(part, others, name, seen, frames):
            self._tell(part, "", "", 0, name, "", part.made)

    def _are_of_two_domains(self, frames: list[FrameType], given: Found, seen: _Seen) -> bool:
        tables = [table.ref() for _, table in seen.tables.values()]
        return any(of_two_domains(self._scene, frames, one, given.table.ref()) for one in tables)

    def _is_meant(self, how: str, site: Site | None, frames: list[FrameType]) -> bool:
        """Return True if a joint scaling is by statistics of the rows, and the evaluation has targets."""
        known = how == "range" and not computes_ranges(self._own_files())
        return not known and not is_written(site, frames)

    def _keep_ranks(self, at: int, table: Table, seen: _Seen) -> None:
        tensor = as_tensor(self._scene, table.ref()) if at not in seen.ranks else None
        ranks = ranks_of(self._scene.torch, tensor) if tensor is not None else None
        if ranks is not None:
            seen.ranks[at] = ranks

    def _compare_order(self, part: _Part, seen: _Seen) -> None:
        """Emit the order of the columns of an evaluation, next to those of all tables of the training."""
        torch, tensor = self._scene.torch, as_tensor(self._scene, part.table.ref())
        ranks = ranks_of(torch, tensor) if tensor is not None and seen.ranks else None
        found = [order_of(torch, ranks, one) for one in seen.ranks.values()] if ranks is not None else []
        if any(one.fits for one in found):
            self._tell_order(part, len(part.views[0].varied), 0)
        elif found and all(one.moved for one in found):
            self._tell_order(part, len(part.views[0].varied), found[0].moved)

    def _tell_order(self, part: _Part, columns: int, moved: int) -> None:
        name, rows, site, made = part.name, part.table.rows, part.site, part.made
        event = OrderRead(model=part.model, table=name, rows=rows, columns=columns, moved=moved, site=site, made=made)
        self._scene.emit(event)

    def _own_files(self) -> Any:
        return self._scene.sites.own_files()

    def _join(self, part: _Part, others: list[View], name: str, seen: _Seen, frames: list[FrameType]) -> bool:
        """Emit the scaling of parts that are scaled together with the training, among them the latest, if there are."""
        more = [one for one in seen.parts.values() if one is not part and not one.emitted]
        for size in range(len(more) + 1):
            for some in itertools.combinations(more, size):
                parts = [part, *some]
                if any(self._shared_by(one, other) > _APART for one, other in itertools.combinations(parts, 2)):
                    continue
                joined = others
                for one in parts:
                    joined = [view.joined(other) for view, other in zip(joined, one.views, strict=True)]
                how, features = _joint(joined, others)
                if features and self._is_meant(how, part.site, frames):
                    for one in parts:
                        self._tell(one, "joint", how, features, name, "", one.made)
                    return True
        return False

    def _shared_by(self, one: _Part, other: _Part) -> float:
        return float(one.table.has(self._scene.torch, other.table.keys).float().mean())

    def _tell(
        self, part: _Part, kind: str, how: str, features: int, trained: str, whole: str, made: Site | None
    ) -> None:
        part.emitted = kind
        self._scene.emit(
            ScalingRead(
                model=part.model,
                table=part.name,
                rows=part.table.rows,
                trained=trained,
                kind=kind,
                how=how,
                features=features,
                whole=whole,
                loader=part.loader,
                site=part.site,
                made=made,
            )
        )

    def _views_of(self, table: Table) -> list[View]:
        value = table.ref()
        if value is None:
            return []
        version, known = version_of(value), self._views.get(id(value))
        if known is not None and known[0]() is value and known[1] == version:
            return known[2]
        tensor = as_tensor(self._scene, value)
        views = [] if tensor is None or not tensor.is_floating_point() else views_of(self._scene.torch, tensor)
        if len(self._views) > 4 * _MOST_TABLES:
            self._views.clear()
        self._views[id(value)] = Ref(value), version, views
        return views


def _is_sample(found: Found) -> bool:
    return bool(found.form[1]) and not found.window


def _scaled(views: list[View]) -> tuple[str, int]:
    """Return how all rows are scaled with their own statistics, and the number of features; 0 if they are not."""
    for view in views:
        if view.standardised():
            return "standard", view.standardised()
    bounded = next((view.bounded() for view in views), 0)
    robust = next((view.robust for view in views), 0)
    return ("range", bounded) if bounded else ("robust" if robust else "", robust)


def _unlike(views: list[View], trained: list[View]) -> str:
    """Return how rows are scaled if those of the training are scaled in another way, with their own statistics."""
    rows, others = views[0], trained[0]
    if rows.kind != "columns" or not bool((rows.varied == others.varied).all()):
        return ""
    if others.standardised() and rows.is_of_range():
        return "range"
    least = others.rows[2][others.varied]
    return "standard" if others.bounded() and bool((least > -_HALF).all()) and rows.is_of_deviations() else ""


def _joint(views: list[View], trained: list[View]) -> tuple[str, int]:
    """Return how rows are scaled with the statistics of all of them, and not of those of the training."""
    for view, other in zip(views, trained, strict=False):
        if view.standardised() and not other.standardised():
            return "standard", view.standardised()
    if not views or not trained or not views[0].bounded():
        return "", 0
    joint = views[0].reaches(views[0]) - trained[0].reaches(views[0]) >= _LEAST_JOINT
    return ("range", views[0].bounded()) if joint else ("", 0)


def _made_at(frames: list[FrameType], one: Found) -> Site | None:
    return made_at(frames, {id(one.table.ref()), one.table.owner})


def made_at(frames: list[FrameType], wanted: set[int]) -> Site | None:
    """Return the statement that stored a variable with one of some objects: an array, or an object that holds it."""
    for frame in frames:
        for name, value in variables(frame).items():
            statement = stored_by(frame, name) if id(value) in wanted else None
            if statement is not None:
                value = statement.value if isinstance(statement, ast.Assign) else statement.iter
                places = (value.lineno, value.col_offset, value.end_lineno or -1, value.end_col_offset or -1)
                return Site(frame.f_code.co_filename, *places)
    return None
