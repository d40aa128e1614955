"""All checks of a copy of a model, on one of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truestep.events import (
    ArgumentsCompared,
    CheckSkipped,
    DerivativeCompared,
    DrawsCompared,
    Event,
    InputsCompared,
    PaddingCompared,
    SamplesCompared,
    Site,
)
from truestep.probes.active.arguments import arguments, positions
from truestep.probes.active.derivatives import derivatives
from truestep.probes.active.influence import draws, influence
from truestep.probes.active.samples import Mixing, compare, scrambled
from truestep.probes.active.sequences.ends import ends
from truestep.probes.active.sequences.masks import masks
from truestep.probes.active.sequences.padding import padding
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call, Path
from truestep.probes.copies.objects import Refused
from truestep.seams.refs import Ref

_BY_PLACE = frozenset({"batch_first", "view", "select", "linear", "place", "repeat"})
"""Causes, and operations, that take one sample for another; a mean or an attention can be meant for a set of points."""
_MOST_SHIFT = 2
ALL = frozenset({"samples", "draws", "inputs", "arguments", "padding", "derivatives"})
OF_FUNCTIONS = frozenset({"samples", "inputs", "padding"})
"""Checks of a function that is a model: its parameters are also flags, and names that others of its kind use."""


class Batch:
    """The latest batch of a DataLoader, or rows drawn from a table: they show the dimension of the samples."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._drawn: dict[int, tuple[int, ...]] = {}
        """Model to the shape of a row, if it was trained on rows of a table in any order."""
        self.loader: int | None = None
        self._tensors: list[Ref] = []
        self._shapes: list[tuple[int, ...]] = []

    def drawn(self, loader: int | None, fields: Sequence[Any]) -> None:
        """Record the shapes of a batch, with weak references to its tensors.

        Args:
            loader: number of the loader.
            fields: the fields, if torch's default collation created them.
        """
        tensors = [item for item in fields[:8] if isinstance(item, self._scene.torch.Tensor)]
        self.loader = loader
        self._tensors = [Ref(item) for item in tensors]
        self._shapes = [tuple(item.shape) for item in tensors]

    def read(self, model: int, places: Any, row: tuple[int, ...]) -> None:
        """Record the rows of a table that a model was trained on.

        Args:
            model: the model.
            places: place of each row in the table.
            row: shape of a row.
        """
        if bool((places[1:] < places[:-1]).any()):
            self._drawn[model] = row

    def is_drawn(self, model: int, rows: dict[Path, Any]) -> bool:
        """Return True if rows without labels are those of a table that a model was trained on in any order.

        Sequences can be shorter than those of the table by the positions that a shift leaves out.
        """
        shape, row = tuple(next(iter(rows.values())).shape), self._drawn.get(model)
        if row is None or self.loader is not None or self._scene.losses.labels == shape[0]:
            return False
        return row == shape[1:] or (len(row) == 1 == len(shape) - 1 and 0 < row[0] - shape[1] <= _MOST_SHIFT)

    def is_collated(self, rows: dict[Path, Any]) -> bool:
        """Return True if rows with a label each are those of a loader with another collation than torch's."""
        shape = next(iter(rows.values())).shape
        known = self.loader is not None and self._scene.loader == self.loader and not self._shapes
        return known and self._scene.losses.labels == shape[0] not in shape[1:]

    def size(self) -> int:
        """Return the number of samples of the latest batch of the current loop over a loader; 0 without one."""
        sizes = {shape[0] if shape else 0 for shape in self._shapes}
        known = self.loader is not None and self._scene.loader == self.loader and len(sizes) == 1
        return sizes.pop() if known else 0

    def samples(self, model: int, call: Call) -> tuple[int, dict[Path, Any]]:
        """Return the number of samples of a call, and its arguments with a row for each: a batch with labels.

        Raises:
            Refused: the arguments are different.
        """
        torch = self._scene.torch
        samples, rows = call.rows(torch)
        shapes = self._shapes
        if samples < 2 or all(value.dim() < 2 for value in rows.values()):
            raise Refused("its input is not a batch of several samples")
        if any(samples in value.shape[1:] for path, value in call.tensors(torch).items() if path not in rows):
            raise Refused("its arguments have their samples in different dimensions")
        if any(value.layout is not torch.strided for value in rows.values()):
            raise Refused("its input is sparse")
        if self.loader is None and (self._scene.losses.labels == samples or self.is_drawn(model, rows)):
            return samples, rows
        if self.is_collated(rows):
            return samples, rows
        if self.loader is None or self._scene.loader != self.loader or len(shapes) < 2:
            raise Refused("its input is not a batch with labels")
        if any(not shape or shape[0] != samples for shape in shapes):
            raise Refused("its input is not a batch of several samples")
        first = next(iter(rows.values()))
        alike = any(ref() is value for ref in self._tensors for value in rows.values())
        if not alike and (tuple(first.shape) not in shapes or samples in first.shape[1:2]):
            raise Refused("its input is not the batch of the DataLoader")
        return samples, rows


def _mixing(trial: Trial, model: int, batch: Batch) -> tuple[int, Mixing]:
    """Return the number of samples of a call, and whether they are mixed.

    Raises:
        Refused: its rows are not known to be samples.
    """
    count, rows = batch.samples(model, trial.call)
    found = compare(trial, count, rows)
    uncertain = batch.is_drawn(model, rows) or batch.is_collated(rows)
    if found.mixed and uncertain and _BY_PLACE.isdisjoint({found.cause, found.kind}):
        raise Refused("its rows can be a set of points")
    return count, found


def _inputs(trial: Trial) -> dict[str, Any]:
    """Return the facts of `InputsCompared`.

    Raises:
        Refused: a check was not possible, and the others found nothing.
    """
    facts: dict[str, Any] = {}
    refusals: list[Refused] = []
    for check in (masks, influence, positions, ends):
        try:
            found: Any = check(trial)
        except Refused as refused:
            refusals.append(refused)
        else:
            facts |= {name: getattr(found, name) for name in type(found).__slots__}
    if refusals and not any(value for name, value in facts.items() if name != "inputs"):
        raise refusals[0]
    return facts


def _slopes(trial: Trial, model: int, functions: list[Any]) -> list[Event]:
    return [
        DerivativeCompared(
            model=model,
            function=found.function,
            ratio=float(f"{found.ratio:.2g}"),
            wrong=found.wrong,
            site=found.site,
        )
        for found in derivatives(trial, functions)
    ]


def battery(
    trial: Trial,
    model: int,
    site: Site | None,
    functions: list[Any],
    batch: Batch,
    *,
    evaluated: bool,
    only: frozenset[str] = ALL,
) -> list[Event]:
    """Return the results of some checks of a copy, and the reasons for those that were not possible."""
    events: list[Event] = []

    def samples() -> None:
        try:
            count, found = _mixing(trial, model, batch)
        except Refused as refused:
            count, _ = trial.call.rows(trial.scene.torch)
            view = scrambled(trial, count) if count > 1 else None
            if view is None:
                raise
            events.append(CheckSkipped(check="samples", reason=f"the model was not checked: {refused}"))
            found = view
        events.extend(
            SamplesCompared(
                model=model,
                loader=batch.loader,
                samples=count,
                mixed=one.mixed,
                cause=one.cause,
                kind=one.kind,
                before=one.shapes[0],
                after=one.shapes[1],
                site=one.site if one.cause else site,
            )
            for one in (found, found.behind)
            if one is not None
        )

    def random() -> None:
        found = draws(trial)
        events.append(DrawsCompared(model=model, differ=found.differ, cause=found.cause, site=found.site or site))

    def inputs() -> None:
        count, _ = trial.call.rows(trial.scene.torch)
        events.append(InputsCompared(model=model, samples=count, site=site, **_inputs(trial)))

    def each() -> None:
        found, training = arguments(trial), not evaluated
        if found.alive:
            facts = {name: getattr(found, name) for name in type(found).__slots__}
            events.append(ArgumentsCompared(model=model, training=training, site=site, **facts))

    def padded() -> None:
        found = padding(trial)
        if found is not None:
            facts = {name: getattr(found, name) for name in type(found).__slots__}
            events.append(PaddingCompared(model=model, changes=found.changes, site=site, **facts))

    checks = {"samples": samples, "draws": random, "inputs": inputs, "arguments": each, "padding": padded}
    checks["derivatives"] = lambda: events.extend(_slopes(trial, model, functions))
    for name, check in checks.items():
        try:
            if name in only and (name != "derivatives" or functions):
                check()
        except Refused as refused:
            events.append(CheckSkipped(check=name, reason=f"the model was not checked: {refused}"))
    return events
