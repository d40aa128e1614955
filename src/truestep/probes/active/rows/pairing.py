"""Targets of a loss next to the batch that its inputs were fetched in: the same samples, or others."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from truestep.events import RowsPaired, Site
from truestep.probes.active.rows.calls import Calls, Made
from truestep.probes.active.rows.fetched import LEAST_ROWS, Batches, Field, Located, sampled
from truestep.probes.active.rows.orders import Order, compare, is_read
from truestep.probes.active.rows.written import Written, given_for, targets_of
from truestep.probes.backward.loss_terms.logits import Logits
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call
from truestep.probes.variables.arrays import arrays, as_tensor, shape_of
from truestep.probes.variables.origins import loss_made_at, target_made_at

if TYPE_CHECKING:
    from truestep.probes.active.rows.lookup import Found

_IN_A_MODEL = 2
"""Depth of calls inside a trainable model in a sampled step; inside a module that computes a loss it is 1."""
_MOST_CELLS = 1 << 24
_MOST_ARGUMENTS = 8
_MOST_INDICES = 16
_LEAST_VARIED = 3
"""Numbers of samples of each class, from which they are not the same in all batches by design."""

_Key = tuple[Site | None, int, str]
"""Line of a loss, its target among several, and a part of the batch."""


class Pairing:
    """Emits `RowsPaired` for targets of batches of DataLoaders.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._batches = Batches(scene)
        self.calls = Calls(scene)
        self._logits = Logits(scene)
        self._inside: list[tuple[Site | None, Any, int]] = []
        """Losses in the call under way: line, values of the targets, and rows."""
        self._unlike: set[_Key] = set()
        """Lines of losses with targets that were once neither in the order of a part of a batch nor in another one."""
        self._counts: dict[_Key, set[tuple[int, ...]]] = {}
        self._latest: Any = None
        """Values of the latest target that was compared."""

    def drawn(self, batch: Any) -> None:
        """Handle a batch of a DataLoader: keep some values of it at a sampled step."""
        scene = self._scene
        if scene.coast.on or not scene.sampling.on or scene.sampling.given_up:
            return
        with self._aside(), self._scene.sampling.timed(None):
            self._batches.drawn(batch)

    def returned(self, model: int, site: Site | None, call: Call, frame: FrameType, result: Any) -> Made:
        """Record a call at a sampled step, with the rows of its arguments."""
        inside, self._inside = self._inside, []
        with self._aside(), self._scene.sampling.timed(None):
            made = self.calls.returned(model, site, result)
            torch = self._scene.torch
            arguments = [value for value in call.tensors(torch).values() if value.dim()][:_MOST_ARGUMENTS]
            made.given = [value for value in map(self._values, arguments) if value is not None]
            if not self._batches.any():
                return made
            located = [one for one in (self._located(value) for value in arguments) if one is not None]
            if located and all(_agree(one, located[0]) for one in located):
                made.located = max(located, key=lambda one: one.field.width)
            found = []
            for line, values, rows in inside:
                if made.located is not None and len(made.located.places) == rows and is_read(torch, values, made.given):
                    found.append(self._compare(line, made.located, Written(made.located, values), frame))
        for event in found:
            if event is not None:
                self._scene.emit(event)
        return made

    def computed(self, site: Site | None, frame: FrameType, input: Any, target: Any) -> bool:
        """Handle a loss of training at a sampled step. Return True if its targets are those of other samples."""
        if not self._batches.any() or not self._is_target(target):
            return False
        with self._aside(), self._scene.sampling.timed(None):
            if self._scene.depth.inside == _IN_A_MODEL:
                rows = len(target)
                self._inside.append((site, sampled(self._scene, target, rows), rows))
                return False
            located = self.calls.order(input)
            if located is None:
                return False
            rows = len(located.places)
            if rows < LEAST_ROWS or target.numel() % rows or (len(target) != rows and target.dim() > 1):
                return False
            values = sampled(self._scene, target, rows)
            event = self._compare(site, located, Written(located, values), frame)
            if event is not None and not event.equal and self._is_read(values):
                return False
        if event is not None:
            self._scene.emit(event)
        return event is not None and not event.equal

    def differentiated(self, root: Any, site: Site | None, frame: FrameType | None) -> None:
        """Handle a backward pass at a sampled step: uses of results, and targets of losses that are written by hand.

        Args:
            root: the operation that made the loss.
            site: line of the backward pass.
            frame: the frame that called it.
        """
        self.calls.begin()
        with self._aside(), self._scene.sampling.timed(None):
            self._logits.look(root, [(made.model, made.nodes) for made in self.calls.kept], site)
        if root is None or not self._batches.any() or all(made.located is None for made in self.calls.kept):
            return
        found = []
        with self._aside(), self._scene.sampling.timed(None):
            for slot, written in enumerate(targets_of(self._scene, self.calls, root)):
                line = loss_made_at(self._scene, frame, site)
                event = self._compare(line, written.located, written, frame, slot + 1)
                if event is not None and (event.equal or not self._is_read(self._latest)):
                    found.append(replace(event, made=None))
        for event in found:
            self._scene.emit(event)

    def reads(self, target: Any) -> bool:
        """Return True if a model reads a target as a part of its input: both are of the same sample by design."""
        if not self._is_target(target):
            return False
        with self._aside(), self._scene.sampling.timed(None):
            return self._is_read(sampled(self._scene, target, len(target)))

    def _is_read(self, values: Any) -> bool:
        return is_read(self._scene.torch, values, [one for made in self.calls.kept for one in made.given])

    def tables(self, value: Any) -> list[Found]:
        """Return the tables with the rows that the input of a loss was computed from; none if that is uncertain."""
        made = None if self._scene.depth.inside == _IN_A_MODEL else self.calls.of(value)
        if made == [] and len(self.calls.kept) == 1:
            made = self.calls.kept
        if made is None or len(made) != 1:
            return []
        return made[0].found

    def before(self, given: tuple[Any, ...]) -> list[Found] | None:
        """Return the tables of the call that made the first argument of another one; None if no call made it."""
        if not given or type(given[0]) is not self._scene.torch.Tensor or not given[0].requires_grad:
            return None
        made = self.calls.of(given[0])
        if made is None or len(made) > 1:
            return []
        return made[0].found if made else None

    def _compare(
        self, site: Site | None, located: Located, given: Written, frame: FrameType | None, slot: int = 0
    ) -> RowsPaired | None:
        """Return the event of a target: of the same samples, or of others, in the part that it is most like."""
        torch, batch = self._scene.torch, located.batch
        rows = len(located.places)
        found: list[tuple[Order, Field, Any]] = []
        for field in batch.fields:
            expected, order = field.values[located.places], None
            values = given_for(torch, given, expected)
            if values is not None and (field.whole or field.values.shape == values.shape):
                order = compare(torch, expected, values, lambda: self._indices(frame, rows))
            if order is None:
                self._unlike.add((site, slot, field.name))
            elif order.equal or (field is not located.field and not _is_number(torch, field)):
                found.append((order, field, values))
        if not found:
            return None
        order, field, self._latest = min(found, key=lambda one: (not one[0].equal, one[0].chance))
        chance = 0.0 if order.equal else self._chance(order, (site, slot, field.name))
        return RowsPaired(
            model=0,
            table=located.field.name,
            other=field.name,
            rows=batch.rows,
            equal=order.equal,
            batch=True,
            chance=round(chance, 1),
            site=site,
            made=None if order.equal else target_made_at(self._scene, frame, site),
        )

    def _chance(self, order: Order, key: _Key) -> float:
        """Return the probability of an order by chance: 1 for one that an equal number of each class can explain."""
        if order.known:
            return order.chance
        seen = self._counts.setdefault(key, set())
        varied = len(seen) >= _LEAST_VARIED
        if key in self._unlike or (order.counts in seen and not varied):
            return 0.0
        seen.add(order.counts)
        return order.chance

    def _located(self, value: Any) -> Located | None:
        """Return the rows of an argument: of a batch, or of the calls that it is a result of."""
        if value.requires_grad or any(ref() is value for made in self.calls.kept for ref in made.results):
            return self.calls.order(value)
        return self._batches.locate(value)

    def _values(self, value: Any) -> Any:
        return sampled(self._scene, value, len(value)) if self._is_target(value) else None

    def _is_target(self, value: Any) -> bool:
        return (
            type(value) is self._scene.torch.Tensor
            and value.is_cpu
            and not value.requires_grad
            and not value.is_complex()
            and not value.is_quantized
            and value.dim() > 0
            and len(value) >= LEAST_ROWS
            and 0 < value.numel() <= _MOST_CELLS
            and has_values(value)
        )

    def _indices(self, frame: FrameType | None, rows: int) -> list[Any]:
        """Return the permutations that variables of the program hold."""
        torch, scene = self._scene.torch, self._scene
        found: list[Any] = []
        for held in arrays(scene, scene.sites.users(frame)):
            if shape_of(torch, held.value) != (rows,) or len(found) == _MOST_INDICES:
                continue
            index = as_tensor(scene, held.value)
            if index is None or index.dtype not in (torch.int64, torch.int32):
                continue
            if bool((index.sort()[0] == torch.arange(rows)).all()):
                found.append(index.long())
        return found


def _agree(one: Located, other: Located) -> bool:
    return (
        one.batch is other.batch and len(one.places) == len(other.places) and bool((one.places == other.places).all())
    )


def _is_number(torch: Any, field: Field) -> bool:
    """Return True for whole numbers that are all different: numbers of samples, not targets."""
    values = field.values
    return field.width == 1 and bool((values == values.round()).all()) and len(torch.unique(values)) == len(values)
