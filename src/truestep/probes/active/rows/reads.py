"""Rows of tables that a model is called on: which ones, with which targets, and whether the training read them too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import LabelsRead, RowsEvaluated, RowsPaired, RowsRead, Site
from truestep.probes.active.rows.labels import Labels
from truestep.probes.active.rows.lookup import Found, Lookup
from truestep.probes.active.rows.names import UnusedParts, never_loaded, stored_at
from truestep.probes.active.rows.pairs import Pairs
from truestep.probes.active.rows.tables import CopiedRows, Table, keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, named, shape_of

_LEAST = 8
"""Least number of rows of a batch."""
_MOST_CALLS = 100
_MOST_LOOKS = 2
"""Calls of a line at which arrays are looked for that nothing reads."""
_MOST_READS = 2
"""Calls of training that are read in a step."""
_OFTEN = 16
"""Calls of a line from which it must be seldom next to the steps: others are those of a teacher."""
_MOST_SEEN = 1 << 16
_MOST_FRESH = 256
_MOST_TABLES = 64
_WIDE = 8
"""Least number of values of a row that is not a point of a grid."""


@dataclass(slots=True)
class _Seen:
    """Rows that calls of training were made on, of one form: the shape and type of a row."""

    keys: set[int] = field(default_factory=set)
    tables: dict[tuple[str, int], Table] = field(default_factory=dict)
    """Name and rows of the smallest tables that the batches came from."""
    places: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    """The same, to the places of windows."""


class RowReads:
    """Emits `RowsRead`, `RowsPaired` and `RowsEvaluated`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._seen: dict[tuple[int, tuple[Any, ...]], _Seen] = {}
        """Model, or 0 for all of them, and form of the rows, to the rows of the training."""
        self.copies = CopiedRows(scene)
        self._lookup = Lookup(scene, self.copies)
        self._fresh: dict[tuple[str, tuple[Any, ...]], set[int]] = {}
        """Arrays with rows of the training and others, to some keys of the others, until they are read."""
        self._unused: set[str] = set()
        """Names of arrays that no statement of the program reads."""
        self.parts = UnusedParts(scene)
        self._calls: dict[Site | None, int] = {}
        self._reads: dict[tuple[int, int], int] = {}
        """The latest model and step to the number of its reads."""
        self._optimizers = 0
        self._inputs: list[Found] = []
        """The rows of the latest call of training."""
        self._labels = Labels(scene)
        self._whole: dict[int, tuple[int, tuple[int, ...], int]] = {}
        """Model to the number of optimizers, the shape, and the sum of the keys of the rows of its latest training."""
        self._evaluated_now: tuple[list[FrameType], list[Held], list[Found]] | None = None
        """Frames, arrays and tables of the evaluation under way, until its results are compared."""
        self._part: Sequence[int] | None = None

    # --- training ----------------------------------------------------------------------------------------------

    def training(
        self,
        model: int,
        site: Site | None,
        frame: FrameType,
        given: tuple[Any, ...],
        before: list[Found] | None = None,
    ) -> list[Found]:
        """Handle a call in training, at a sampled step. Return the tables with the rows of its input.

        Args:
            model: number of the model.
            site: line of the call.
            frame: torch's frame of it.
            given: its arguments.
            before: tables of the call that made its input, if there is one.
        """
        scene = self._scene
        self._inputs = []
        key = model, scene.sampling.step
        self._reads = {key: self._reads.get(key, 0) + 1}
        if self._reads[key] > _MOST_READS:
            return []
        with self._aside(), scene.sampling.timed(None):
            frames = scene.sites.users(frame)
            held = arrays(scene, frames)
            found, batch = self._lookup.batch(frames, held, given) if before is None else (before, None)
            if not found:
                if given:
                    self._begin()
                    self.copies.trained(model, given[0])
                return []
            self._inputs = found
            least = min(found, key=lambda one: one.table.rows)
            fresh = self._remember(model, least)
            self.copies.trained(model, given[0], _tables_of(given[0], found))
            pairs = Pairs(scene, held, found).arguments(given, batch)
        samples = least.form[1] or least.window  # else whole numbers, such as the parts of each word of a vocabulary
        if samples and least.table.rows > len(least.places):
            places = least.places
            scene.emit(
                RowsRead(
                    model=model,
                    table=least.name,
                    rows=least.table.rows,
                    read=len(places),
                    least=int(places.min()),
                    most=int(places.max()),
                    fresh=fresh,
                    site=site,
                )
            )
        for pair in pairs:
            scene.emit(RowsPaired(model=model, site=site, **pair))
        return found

    def targets(
        self,
        site: Site | None,
        frame: FrameType | None,
        target: Any,
        found: list[Found],
        part: Sequence[int] | None = None,
        *,
        read: bool = False,
    ) -> None:
        """Handle the targets of a loss that follows a call of training.

        Args:
            site: line of the loss.
            frame: a frame within it.
            target: the targets.
            found: tables with the rows of the call that made the input of the loss.
            part: rows of the data set that the loader reads; None for all.
            read: True if a model reads the targets as a part of its input.
        """
        scene = self._scene
        if not self._inputs or frame is None:
            return
        with self._aside(), scene.sampling.timed(None):
            frames = scene.sites.users(frame)
            held = arrays(scene, frames)
            pair = Pairs(scene, held, found).target(target)
            labels = self._labels.read(held, self._inputs, target, frames, part=part, training=True, site=site)
        if pair is not None and (pair["equal"] or not read):
            scene.emit(RowsPaired(model=0, site=site, **pair))
        if labels is not None:
            scene.emit(labels)

    def compared(self, site: Site, target: Any) -> LabelsRead | None:
        """Return the labels that an evaluation compares with its results; None if they are in no column."""
        if self._evaluated_now is None:
            return None
        frames, held, found = self._evaluated_now
        return self._labels.read(held, found, target, frames, part=self._part, training=False, site=site)

    def forget(self) -> None:
        """Handle the end of an evaluation: keep no arrays."""
        self._evaluated_now = None

    def _begin(self) -> None:
        """Forget the rows of the training if there is another optimizer since: other weights may be trained."""
        optimizers = self._scene.numbers.count("optimizer")
        if optimizers != self._optimizers:
            self._optimizers = optimizers
            self._seen.clear()
            self.copies.forget()

    def _remember(self, model: int, least: Found) -> int:
        """Record the rows of a call as those of the training of the current optimizers; return how many are new."""
        self._begin()
        keys = set(least.keys.tolist())
        fresh = len(keys)
        for number in (0, model):
            seen = self._seen.setdefault((number, least.form), _Seen())
            fresh = len(keys - seen.keys)
            if len(seen.keys) < _MOST_SEEN:
                seen.keys |= keys
            if len(seen.tables) < _MOST_TABLES:
                seen.tables[least.table.name, least.table.rows] = least.table
            if least.window:
                seen.places.setdefault((least.table.name, least.table.rows), set()).update(least.places.tolist())
        self._no_longer_fresh(least)
        return fresh

    # --- evaluation --------------------------------------------------------------------------------------------

    def evaluation(
        self,
        model: int,
        site: Site | None,
        frame: FrameType,
        given: tuple[Any, ...],
        part: Sequence[int] | None = None,
    ) -> tuple[list[FrameType], list[Found]]:
        """Handle a call without gradients. Return the user's frames, and the tables with the rows of its input.

        ``part`` are the rows of the data set that the loader reads.
        """
        scene = self._scene
        samples = shape_of(scene.torch, given[0])[:1]
        calls = self._calls.get(site, 0)
        often = calls >= _OFTEN and 2 * calls > scene.sampling.step
        if not samples or samples[0] < _LEAST or calls >= _MOST_CALLS or often:
            return [], []
        self._calls[site] = calls + 1
        self._begin()
        with self._aside(), scene.sampling.timed(None):
            frames = scene.sites.users(frame)
            held = arrays(scene, frames)
            found, _ = self._lookup.batch(frames, held, given, whole=True)
            event = RowsEvaluated(model=model, samples=samples[0], site=site)
            copies = self.copies.evaluated(model, frames, given[0], _tables_of(given[0], found))
            if found:
                self._evaluated_now, self._part = (frames, held, found), part
                self.parts.evaluated(frames, held, found, self._lookup.table, first=calls < _MOST_LOOKS)
                event = self._evaluated(model, site, frames, held, found)
        scene.emit(event)
        if copies:
            scene.emit(RowsEvaluated(model=model, samples=samples[0], site=site, copies=True, **copies))
        return frames, found

    def _evaluated(
        self, model: int, site: Site | None, frames: list[FrameType], held: list[Held], found: list[Found]
    ) -> RowsEvaluated:
        torch = self._scene.torch
        least = min(found, key=lambda one: one.table.rows)
        seen = self._seen.get((model, least.form)) or self._seen.get((0, least.form))
        trained = [] if seen is None else [table.ref() for table in seen.tables.values()]
        known = {id(value) for value in trained}
        whole = [one for one in found if one.table.rows == len(one.keys) and id(one.table.ref()) not in known]
        least = whole[-1] if whole else least  # of the outermost frame: the name at the split
        self._no_longer_fresh(least)
        keys = least.keys
        made = stored_at(frames, least.name)
        if seen is None:
            return RowsEvaluated(model=model, table=least.name, samples=len(keys), site=site, made=made)
        hits, table = sum(key in seen.keys for key in keys.tolist()), None
        inside, most = torch.zeros(len(keys), dtype=torch.bool), -1
        for other in seen.tables.values():
            has = other.has(torch, keys)
            if int(has.sum()) > most:
                table, most = other, int(has.sum())
            inside |= has
        if least.window and table is not None:
            read = torch.tensor(sorted(seen.places.get((table.name, table.rows), ())) or [-(1 << 40)])
            places, _ = table.places(torch, keys)
            near = torch.searchsorted(read, places).clamp_(max=len(read) - 1)
            gap = torch.minimum((read[near] - places).abs(), (read[(near - 1).clamp_(min=0)] - places).abs())
            hits = int(((gap < least.window // 2) & inside).sum())
        if hits:
            self._note_fresh(held, least, seen)
            self._unused.update(never_loaded(frames, held))
        return RowsEvaluated(
            model=model,
            table=least.name,
            samples=len(keys),
            hits=hits,
            inside=int(inside.sum()),
            trained=table.name if table is not None else "",
            rows=table.rows if table is not None else 0,
            seen=len(seen.keys),
            windows=least.window > 0,
            own=table is not None and table.ref() is not least.table.ref(),
            wide=least.form[1] and math.prod(least.form[0]) >= _WIDE,
            site=site,
            made=made,
        )

    def _note_fresh(self, held: list[Held], least: Found, seen: _Seen) -> None:
        """Record arrays that hold rows of the training next to others, which nothing has read so far."""
        torch = self._scene.torch
        for one in held:
            table = self._lookup.table(one, least.form)
            key = one.name, least.form
            if table is None or key in self._fresh or len(self._fresh) >= _MOST_TABLES:
                continue
            known = torch.zeros(table.rows, dtype=torch.bool)
            for other in seen.tables.values():
                known |= other.has(torch, table.keys)
            fresh = ~known & ~least.table.has(torch, table.keys)
            if bool(known.any()) and int(fresh.sum()) >= _LEAST:
                some = table.keys[fresh]
                self._fresh[key] = set(some[:: max(1, len(some) // _MOST_FRESH)].tolist())

    def _no_longer_fresh(self, found: Found) -> None:
        form, keys = found.form, None
        for key, fresh in list(self._fresh.items()):
            if key[1] == form and fresh:
                keys = set(found.keys.tolist()) if keys is None else keys
                if fresh & keys:
                    self._fresh[key] = set()

    def unread(self) -> list[tuple[str, bool]]:
        """Return the arrays with rows that no call has read, and True for those that no statement of the file reads."""
        if self._scene.sampling.given_up:
            return []
        mixed = [(name, False) for (name, _), fresh in self._fresh.items() if fresh]
        return [*mixed, *((name, True) for name in sorted(self._unused))]

    def whole(self, model: int, frame: FrameType, given: tuple[Any, ...]) -> list[Found]:
        """Return the first argument of a call of training as a table, once two calls in a row read the same rows."""
        with self._aside(), self._scene.sampling.timed(None):
            keys = keys_of(self._scene, given[0]) if given and shape_of(self._scene.torch, given[0]) else None
            if keys is None or len(keys) < _LEAST or "float" not in str(given[0].dtype):
                return []
            key = self._scene.numbers.count("optimizer"), tuple(given[0].shape), int(keys.sum())
            before, self._whole[model] = self._whole.get(model), key
            if before != key:
                return []
            name = next(named(self._scene, self._scene.sites.users(frame), given[0]), "the inputs")
            table = Table(self._scene.torch, Held(name, 0, given[0]), keys)
            return [Found(name, table, None, keys, (tuple(given[0].shape[1:]), True, 0))]

    def of_data_set(self, given: tuple[Any, ...], data: Any) -> list[Found]:
        """Return the tables of a data set with all rows of the first argument of a call."""
        with self._aside(), self._scene.sampling.timed(None):
            return self._lookup.locate(given[0], arrays_of(self._scene, data)) if given and data is not None else []


def _tables_of(value: Any, found: list[Found]) -> list[Table]:
    """Return the tables of rows that were found, if they are those of an array."""
    return [one.table for one in found if not one.window and one.form[0] == tuple(value.shape[1:])]
