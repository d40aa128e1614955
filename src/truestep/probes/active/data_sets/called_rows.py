"""The rows that a model was called on: of which tables they are, next to those of the training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep.events import Event, PartUnused, RowsUnread, Site
from truestep.probes.active.arguments import numbers_first
from truestep.probes.active.battery import Batch
from truestep.probes.active.data_sets.checks import DataSetChecks
from truestep.probes.active.data_sets.copied_loaders import CopiedLoaders
from truestep.probes.active.data_sets.held_pairs import HeldPairs
from truestep.probes.active.data_sets.label_maps import LabelMaps
from truestep.probes.active.data_sets.near_copies import NearCopies
from truestep.probes.active.data_sets.stored import StoredSamples
from truestep.probes.active.fitted.together import FittedTogether
from truestep.probes.active.rows.pairing import Pairing
from truestep.probes.active.rows.reads import RowReads
from truestep.probes.active.rows.scaling import Scalings
from truestep.probes.active.series.overlaps import WindowOverlaps
from truestep.probes.active.series.scalings import SeriesScalings
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call
from truestep.probes.copies.objects import Refused


class CalledRows:
    """Reads the rows of calls: at sampled steps of the training, and in evaluations.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
        batch: gets the rows of batches that no loader made.
        data: the checks of data sets.
    """

    def __init__(self, scene: Scene, aside: Any, batch: Batch, data: DataSetChecks) -> None:
        self._scene = scene
        self._batch = batch
        self._data = data
        self.rows = RowReads(scene, aside)
        self.pairing = Pairing(scene, aside)
        self.maps = LabelMaps(scene, aside)
        self._stored = StoredSamples(scene, aside)
        self._held_pairs = HeldPairs(scene, aside)
        self._copied = CopiedLoaders(scene)
        self._scalings = Scalings(scene, aside)
        self._series = SeriesScalings(scene, aside)
        self._fitted = FittedTogether(scene, aside)
        self._overlaps = WindowOverlaps(scene, aside)
        self._near = NearCopies(scene, aside)

    def read(self, model: int, site: Site | None, call: Call, frame: FrameType, result: Any, *, tracked: bool) -> None:
        """Read the rows of a call.

        Args:
            model: number of the model.
            site: line of the call.
            call: its arguments.
            frame: a frame inside of it, of torch or of this package.
            result: its result.
            tracked: True if the result tracks gradients.
        """
        scene = self._scene
        if scene.coast.on or (tracked and not scene.sampling.on) or scene.sampling.given_up:
            return
        given = numbers_first((*call.args, *call.kwargs.values()), scene.torch)
        made = self.pairing.returned(model, site, call, frame, result) if scene.sampling.on else None
        if tracked and made is not None:
            self.maps.returned(model, site, given, result)
            before = self.pairing.before(given)
            made.found = self.rows.training(model, site, frame, given, before)
            if before is None and made.found:
                self._batch.read(model, made.found[0].places, made.found[0].form[0])
            found = made.found or self.rows.of_data_set(given, self._data.latest())
            self._scalings.trained(found or self.rows.whole(model, frame, given))
            self._overlaps.trained(found)
            self._near.trained(given, found, self._data.latest())
            self._series.trained(frame, given, self._data.latest)
            self._fitted.trained(given)
            self._stored.look(made.found, self._data.latest(), frame, site)
            self._held_pairs.look(self._data.latest(), frame)
        elif given and not scene.torch.is_grad_enabled():
            frames, found = self.rows.evaluation(model, site, frame, given, self._data.part())
            if all(one.table.rows == len(one.keys) for one in found):  # the batch itself
                found = [*found, *self.rows.of_data_set(given, self._data.latest())]
            self._scalings.evaluated(model, site, frames, found)
            self._overlaps.evaluated(model, site, frames, found, given[0], self._data.latest)
            self._copied.evaluated(self._data.latest(), frames, site)
            self._near.evaluated(model, site, frames, given, found, self._data.latest())
            self._series.evaluated(model, site, frames, given, self._data.latest)
            self._fitted.evaluated(model, site, frames, given, self._data.latest)
            self._stored.look(found, self._data.latest(), frame, site)

    def computed(self, site: Site | None, frame: FrameType, input: Any, target: Any) -> None:
        """Handle a loss of training at a sampled step: its targets next to the rows of the calls before it."""
        with contextlib.suppress(Refused):
            others = self.pairing.computed(site, frame, input, target)
            found = [] if others else self.pairing.tables(input)
            read = bool(found) and self.pairing.reads(target)
            self.rows.targets(site, frame, target, found, self._data.part(), read=read)
        with contextlib.suppress(Refused):
            self.maps.computed(site, frame, input, target)

    def last(self) -> Iterator[Event]:
        """Yield the events that are only known at the end of a run."""
        for name, unused in self.rows.unread():
            yield RowsUnread(table=name, unused=unused)
        for name, site in self.rows.parts.unused().items():
            yield PartUnused(name=name, site=site)
        yield from self._fitted.last()
        yield from self._overlaps.last()
