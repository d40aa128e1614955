"""Checks of the data sets behind the loaders of a training and its evaluations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from truestep.events import CheckSkipped, SampleReadAgain, SamplesShared, Site
from truestep.probes.active import restored_states
from truestep.probes.active.data_sets.overlap import Overlap, Trained
from truestep.probes.active.data_sets.reads import read_again, shared
from truestep.probes.active.grounds import Attempts
from truestep.probes.copies.objects import Refused
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_MOST_DATA = 64
_MOST_COMPARED = 32


class DataSetChecks:
    """Emits `SampleReadAgain` and `SamplesShared`, and `CheckSkipped` for a check that was not possible.

    Args:
        scene: the run.
        aside: context manager for a check; raises `Refused` if no check is possible now.
        attempts: of all checks.
    """

    def __init__(
        self, scene: Scene, aside: Callable[[], contextlib.AbstractContextManager[None]], attempts: Attempts
    ) -> None:
        self._scene = scene
        self._aside = aside
        self._attempts = attempts
        self._data: dict[int, Ref] = {}
        """Loader to its data set, which can outlive it."""
        self._trained = Trained(scene)
        self._compared: dict[int, tuple[tuple[int, int], Overlap | None]] = {}
        """Loader of an evaluation to the state of the training at its comparison, and the result."""

    def drawn(self, loader: int, iterator: Any) -> None:
        """Record the data set of a loader and the samples of its latest batch."""
        if loader not in self._data and len(self._data) < _MOST_DATA:
            with contextlib.suppress(TypeError):  # an object without weak references, such as a list
                self._data[loader] = Ref(iterator._dataset)
        self._trained.drawn(loader, iterator)

    def called(self, module: Any, loader: int | None) -> None:
        """Handle a call of a model with a result that tracks gradients."""
        self._trained.called(module, loader)

    def evaluated(self, module: Any, loader: int | None) -> None:
        """Handle a call of a model without gradients."""
        self._trained.evaluated(module, loader)

    def latest(self) -> Any:
        """Return the data set of the latest batch; None if it is unknown."""
        loader = self._scene.loader
        return self._data[loader]() if loader in self._data else None

    def part(self) -> Sequence[int] | None:
        """Return the rows that the loader of the latest batch reads of its data set; None for all of them."""
        data = self.latest()
        part = vars(data).get("indices") if isinstance(data, self._scene.torch.utils.data.Subset) else None
        return part if isinstance(part, list | range) else None

    def check_reads(self, loader: int, model: int, site: Site | None) -> None:
        """Read some samples of an evaluation a second time, if that was not done yet."""
        scene = self._scene
        if not self._attempts.due("loader", loader):
            return
        self._attempts.begin("loader", loader)
        try:
            with self._aside():
                met = {number: ref() for number, ref in self._data.items()}
                data = met.pop(loader, None)
                if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
                    raise Refused("the data set has no indices or no length")
                with restored_states.kept(scene.torch):
                    reads = read_again(data, scene)
                beside = shared(data, [pair for pair in met.items() if pair[1] is not None], reads.switch)
        except Refused as refused:
            scene.emit(CheckSkipped(check="reads", reason=f"the evaluation data were not checked: {refused}"))
            return
        self._attempts.settle("loader", loader)
        event = SampleReadAgain(loader=loader, model=model, differ=reads.differ, beside=beside, site=site)
        scene.emit(event)

    def check_overlap(self, loader: int, model: int, site: Site | None) -> None:
        """Compare the samples of an evaluation with those that the training has used since its last comparison."""
        scene, trained = self._scene, self._trained
        now = trained.beginnings, trained.changes
        if not (trained.changes or trained.unknown) or loader in trained.loaders:
            return
        if len(self._compared) >= _MOST_COMPARED or self._compared.get(loader, ((0, 0), None))[0] == now:
            return
        found: list[tuple[int, Overlap]] = []
        try:
            found = [(loader, trained.compare(loader, self._aside))]
            for other, ((begun, _), before) in self._compared.items():
                if other == loader or before is None or begun != trained.beginnings:
                    continue
                if not before.shared and not before.by_value:
                    after = trained.again(other, before)
                    found += [(other, after)] if after.shared else []
        except Refused as refused:
            self._compared[loader] = now, None
            reason = f"the evaluation data were not compared with the training: {refused}"
            scene.emit(CheckSkipped(check="overlap", reason=reason))
            return
        for number, overlap in found:
            self._compared[number] = now, overlap
            facts = {name: getattr(overlap, name) for name in Overlap.__slots__}
            shared = SamplesShared(
                loader=number,
                model=model,
                later=number != loader,
                trained=tuple(sorted(trained.loaders)),
                **facts,
                site=site,
            )
            scene.emit(shared)
