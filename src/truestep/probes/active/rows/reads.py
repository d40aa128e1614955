"""Rows of tables that a model is called on: which ones, with which targets, and whether the training read them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import LabelsRead, RowsEvaluated, RowsPaired, RowsRead, Site
from truestep.probes.active.rows.labels import Labels
from truestep.probes.active.rows.names import UnusedParts, never_loaded, stored_at
from truestep.probes.active.rows.pairs import Pairs
from truestep.probes.active.rows.tables import CopiedRows, Table, differ, keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, shape_of, version_of
from truestep.seams.refs import Ref

_LEAST = 8
"""Least number of rows of a batch."""
_INNER = 3
"""Frames with variables that can hold the batch, if the arguments of the call are made from it."""
_MOST_CALLS = 100
_MOST_LOOKS = 2
"""Calls of a line at which arrays are looked for that nothing reads."""
_MOST_READS = 2
"""Calls of training that are read in a step."""
_MOST_KNOWN = 512
_OFTEN = 16
"""Calls of a line from which it must be seldom next to the steps: others are those of a teacher."""
_MOST_SEEN = 1 << 16
_MOST_FRESH = 256
_MOST_TABLES = 64
_MOST_NEAR = 8


@dataclass(slots=True)
class Found:
    """A batch with all its rows in a table."""

    name: str
    table: Table
    places: Any
    keys: Any
    form: tuple[Any, ...] = ()
    """Shape of a row, whether its values are floating-point numbers, and length of a window or 0."""

    @property
    def window(self) -> int:
        return int(self.form[2])


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
        self._known: dict[tuple[int, int], tuple[Ref, Any, Table | None]] = {}
        """Tables of tensors, by id and window, with the version of their values."""
        self._seen: dict[tuple[int, tuple[Any, ...]], _Seen] = {}
        """Model, or 0 for all of them, and form of the rows, to the rows of the training."""
        self.copies = CopiedRows(scene)
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
            found, batch = self._batch(frames, held, given) if before is None else (before, None)
            if not found:
                if given:
                    self._begin()
                    self.copies.trained(model, given[0])
                return []
            self._inputs = found
            least = min(found, key=lambda one: one.table.rows)
            fresh = self._remember(model, least)
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
            found, _ = self._batch(frames, held, given, whole=True)
            event = RowsEvaluated(model=model, samples=samples[0], site=site)
            copies = self.copies.evaluated(model, frames, given[0])
            if found:
                self._evaluated_now, self._part = (frames, held, found), part
                self.parts.evaluated(frames, held, found, self._table, first=calls < _MOST_LOOKS)
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
            site=site,
            made=made,
        )

    def _note_fresh(self, held: list[Held], least: Found, seen: _Seen) -> None:
        """Record arrays that hold rows of the training next to others, which nothing has read so far."""
        torch = self._scene.torch
        for one in held:
            table = self._table(one, least.form)
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

    # --- rows --------------------------------------------------------------------------------------------------

    def _batch(
        self, frames: list[FrameType], held: list[Held], given: tuple[Any, ...], *, whole: bool = False
    ) -> tuple[list[Found], Any]:
        """Return the tables with the rows of a call: of its first argument, else of a variable near the call."""
        torch = self._scene.torch
        if not given or not shape_of(torch, given[0]):
            return [], None
        rows = shape_of(torch, given[0])[0]
        inner = {id(frame) for frame in frames[:_INNER]} | {id(frame.f_globals) for frame in frames[:1]}
        near = [one.value for one in held if one.owner in inner and shape_of(torch, one.value)[:1] == (rows,)]
        for place, value in enumerate((*given, *near[:_MOST_NEAR])):
            found = self.locate(value, held, whole=whole)
            if place >= len(given):  # another order of the same rows need not be that of the input
                found = [one for one in found if whole or one.table.rows > rows]
            if found:
                return found, value
        return [], None

    def of_data_set(self, given: tuple[Any, ...], data: Any) -> list[Found]:
        """Return the tables of a data set with all rows of the first argument of a call."""
        with self._aside(), self._scene.sampling.timed(None):
            return self.locate(given[0], arrays_of(self._scene, data)) if given and data is not None else []

    def locate(self, value: Any, held: list[Held], *, whole: bool = False) -> list[Found]:
        """Return the tables with every row of an array, each once; itself too if ``whole``."""
        torch = self._scene.torch
        shape = shape_of(torch, value)
        if not shape or shape[0] < _LEAST or getattr(value, "requires_grad", False):
            return []
        keys = keys_of(self._scene, value)
        if keys is None or len(torch.unique(keys)) < _LEAST:
            return []
        form = shape[1:], _is_floating(value)
        found = []
        for one in held:
            for window in (0, shape[1]) if len(shape) == 2 and not form[1] else (0,):
                if one.value is value and not whole:
                    continue
                table = self._table(one, (*form, window))
                if table is None or table.rows < len(keys):
                    continue
                places, once = table.places(torch, keys)
                if bool(once.float().mean() >= 0.9) and bool(table.has(torch, keys).all()):
                    found.append(Found(one.name, table, places, keys, (*form, window)))
        return found

    def _table(self, held: Held, form: tuple[Any, ...]) -> Table | None:
        """Return an array as a table of rows of a form, or of windows."""
        scene, value, window = self._scene, held.value, form[2]
        shape = shape_of(scene.torch, value)
        if len(shape) != (1 if window else 1 + len(form[0])) or _is_floating(value) != form[1]:
            return None
        if not window and (shape[1:] != form[0] or (len(shape) == 1 and not form[1])):
            return None  # whole numbers alone are labels, or places of rows
        version = version_of(value)
        known = self._known.get((id(value), window))
        if known is not None and known[0]() is value and version is not None and known[1] == version:
            return known[2]
        keys, table = keys_of(scene, value, window=window), None
        if keys is not None and len(keys) >= _LEAST:
            if differ(scene.torch, keys):
                table = Table(scene.torch, held, keys)
            elif not window:
                self.copies.met(value, keys)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known[id(value), window] = Ref(value), version, table
        return table


def _is_floating(value: Any) -> bool:
    kind = str(value.dtype)
    return "float" in kind
