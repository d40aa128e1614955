"""DataLoaders: started, drawn from, exhausted. Seams: ``DataLoader.__iter__`` and its iterators' ``__next__``."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from truestep.events import BatchDrawn, LoaderEnded, LoaderMet, LoaderStarted
from truestep.probes._names import iterated
from truestep.probes._patch import patch
from truestep.probes._probe import Probe


class DataProbe(Probe):
    """Tells `LoaderMet`, `LoaderStarted`, `BatchDrawn` and `LoaderEnded`; calls inside a fetch are not model calls."""

    def install(self, stack: ExitStack) -> None:
        import torch.utils.data.dataloader as module

        scene = self.scene
        self._started: dict[tuple[int, int], LoaderStarted] = {}
        self._drawn: dict[int, BatchDrawn] = {}
        self._ended: dict[int, LoaderEnded] = {}
        self.waited_s = 0.0
        """Time spent waiting for batches so far."""

        def __iter__(loader: Any) -> Any:
            iterator = original_iter(loader)
            if scene.active:
                self.started(loader, iterator)
            return iterator

        def __next__(iterator: Any) -> Any:
            if not scene.active:
                return original_next(iterator)
            depth = scene.depth
            outer, depth.fetching = depth.fetching, True
            begun = time.perf_counter()
            try:
                batch = original_next(iterator)
            except StopIteration:
                self.ended(iterator)
                raise
            finally:
                depth.fetching = outer
                self.waited_s += time.perf_counter() - begun
            if not outer:
                self.drawn(iterator)
            return batch

        original_iter = patch(stack, module.DataLoader, "__iter__", __iter__)
        original_next = patch(stack, module._BaseDataLoaderIter, "__next__", __next__)

    def started(self, loader: Any, iterator: Any) -> None:
        scene = self.scene
        try:
            number, new = scene.number("loader", loader)
            site = scene.site()
            if new:
                self._meet(loader, number, site)
            try:
                iterator._truestep_loader = number
            except AttributeError:
                return
            key = (number, id(site))
            event = self._started.get(key)
            if event is None:
                event = self._started[key] = LoaderStarted(loader=number, site=site)
            scene.emit(event)
        except Exception:
            scene.fail()

    def _meet(self, loader: Any, number: int, site: Any) -> None:
        try:
            batches: int | None = len(loader)
        except (TypeError, NotImplementedError):
            batches = None
        sampler = type(getattr(loader, "sampler", None)).__name__
        dataset = loader.dataset
        base = dataset
        for _ in range(4):
            base = getattr(base, "dataset", base)
        try:
            dataset_number = self.scene.number("dataset", dataset)[0]
        except TypeError:
            dataset_number = -number
        self.scene.emit(
            LoaderMet(
                loader=number,
                name=iterated(site, "loader"),
                dataset=dataset_number,
                dataset_kind=type(dataset).__name__,
                batch_size=loader.batch_size,
                batches=batches,
                shuffled=sampler not in ("SequentialSampler", "NoneType", "_InfiniteConstantSampler"),
                workers=int(loader.num_workers),
                site=site,
            )
        )

    def drawn(self, iterator: Any) -> None:
        scene = self.scene
        try:
            number = getattr(iterator, "_truestep_loader", None)
            if number is None:
                return
            scene.loader = number
            event = self._drawn.get(number)
            if event is None:
                event = self._drawn[number] = BatchDrawn(loader=number)
            scene.emit(event)
        except Exception:
            scene.fail()

    def ended(self, iterator: Any) -> None:
        scene = self.scene
        try:
            number = getattr(iterator, "_truestep_loader", None)
            if number is None:
                return
            if scene.loader == number:
                scene.loader = None
            event = self._ended.get(number)
            if event is None:
                event = self._ended[number] = LoaderEnded(loader=number)
            scene.emit(event)
        except Exception:
            scene.fail()
