"""DataLoaders: started, drawn from, exhausted. Seams: ``DataLoader.__iter__`` and its iterators' ``__next__``.

The line that creates a loader is recorded at the check of its workers, the end of its ``__init__``: frameworks inspect
the signature of ``__init__`` itself, so it is not wrapped.
"""

from __future__ import annotations

import functools
import itertools
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import BatchDrawn, BatchRead, Event, LoaderEnded, LoaderMet, LoaderStarted, LoaderUnread, Site
from truestep.probes.context.names import iterated, target
from truestep.probes.context.probe import Probe, sees
from truestep.probes.data.batches import describe
from truestep.probes.data.loader_times import MOST, Pass, Wait
from truestep.probes.data.loop_source import leaving
from truestep.probes.data.sampler_weights import drawn_from, follow_counts
from truestep.probes.data.stored_values import content
from truestep.seams import ranks
from truestep.seams.patch import patch

_PASSES = 3
"""Passes over each data set in which some batches are read, with one loader or several."""
_READS = 600
"""Largest number of batches that are read in a run."""
_GENERAL = ("loader", "dataloader", "data_loader", "dl", "data", "batches", "iterator", "it")
_MOST_UNREAD = 64
_FAMILY = "loader"
_WORKERS_CHECK = "check_worker_number_rationality"


class DataProbe(Probe):
    """Emits `LoaderMet`, `LoaderStarted`, `BatchDrawn`, `LoaderEnded` and, at first, `BatchRead`.

    Calls inside a fetch are not model calls.
    """

    def install(self, stack: ExitStack) -> None:
        import torch.utils.data.dataloader as module

        scene = self.scene
        self._made: weakref.WeakKeyDictionary[Any, tuple[Site | None, int]] = weakref.WeakKeyDictionary()
        """Line and number of the construction of a loader."""
        self._count = itertools.count()
        self._unread: dict[int, LoaderUnread] = {}
        """Loaders that were built and not yet read, by a number given at construction."""
        self._places: dict[int, frozenset[int]] = {}
        self._datasets: dict[int, int] = {}
        """Number of the data set by number of the loader."""
        self._passes: dict[int, int] = {}
        self._leaving = functools.cache(leaving)
        self._reads = 0
        self._waits: dict[int, Wait] = {}

        def __iter__(loader: Any) -> Any:
            begun = time.perf_counter()
            iterator = original_iter(loader)
            if scene.active:
                self.started(loader, iterator, begun)
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
            if not outer:
                now = time.perf_counter()
                scene.unseen.met(batch)
                self.drawn(iterator, batch, begun, now)
            return batch

        def check(loader: Any) -> Any:
            if scene.active:
                self.made(loader)
            return original_check(loader)

        if hasattr(module.DataLoader, _WORKERS_CHECK):
            original_check = patch(stack, module.DataLoader, _WORKERS_CHECK, check)
        original_iter = seams.loader.wrap_iter(stack, __iter__)
        original_next = seams.loader.wrap_next(stack, __next__)

    @sees
    def made(self, loader: Any) -> None:
        """Record the line that creates a loader, unless the loader has no hash."""
        try:
            if loader in self._made:  # the check comes again with every start of workers
                return
            site, number = self.scene.site(), next(self._count)
            self._made[loader] = site, number
        except TypeError:
            return
        if len(self._unread) < _MOST_UNREAD and site is not None:
            samples = len(loader.dataset) if _order(loader) == "random" else None
            self._unread[number] = LoaderUnread(name=target(site, "loader"), samples=samples, site=site)

    def last(self) -> Iterator[Event]:
        yield from self._unread.values()
        for wait in self._waits.values():
            event = wait.event()
            if event is not None:
                yield event

    @sees
    def started(self, loader: Any, iterator: Any, begun: float) -> None:
        scene, now = self.scene, time.perf_counter()
        number, new = scene.numbers.of(_FAMILY, loader)
        site = scene.site()
        if new:
            self._meet(loader, number, site)
        try:
            iterator._truestep_loader = number
        except AttributeError:
            return
        scene.tell(LoaderStarted, loader=number, **self._leaving(site)._asdict(), epoch=_epoch(loader), site=site)
        dataset = self._datasets[number]
        self._passes[dataset] = passes = self._passes.get(dataset, 0) + 1
        reads = passes <= _PASSES and self._reads < _READS and not scene.sampling.given_up
        if scene.seeds is not None:
            scene.seeds.loader_started()
        iterator._truestep_places = self._places.get(number) if reads else None
        if not scene.depth.fetching:
            iterator._truestep_pass = self._pass(loader, number, begun, now)

    def _pass(self, loader: Any, number: int, begun: float, now: float) -> Pass | None:
        """Start timing a pass over a loader."""
        wait = self._waits.get(number)
        if wait is None:
            if len(self._waits) == MOST:
                return None
            in_turn = not loader.persistent_workers and getattr(loader, "in_order", True)
            wait = self._waits[number] = Wait(number, loader.num_workers if in_turn else 0, now)
        parameters = [held.ref() for held in self.scene.ledger.live[:2]]
        wait.beside = wait.beside or any(p is not None and p.device.type != "cpu" for p in parameters)
        return Pass(wait, begun, now)

    def _name(self, site: Site | None, made: Site | None) -> str:
        """Return the variable that a loop reads; for a general name, the one that the loader was made for."""
        name = iterated(site, "loader")
        return target(made, name) if name in _GENERAL else name

    def _meet(self, loader: Any, number: int, site: Any) -> None:
        made, built = self._made.get(loader, (None, -1))
        self._unread.pop(built, None)
        try:
            batches: int | None = len(loader)
        except (TypeError, NotImplementedError):
            batches = None
        sampler = type(getattr(loader, "sampler", None)).__name__
        iterable = bool(getattr(loader, "_dataset_kind", 1))
        dataset = loader.dataset
        try:
            samples: int | None = None if iterable else len(dataset)
        except (TypeError, NotImplementedError):
            samples = None
        base = dataset
        for _ in range(4):
            base = getattr(base, "dataset", base)
        try:
            dataset_number = self.scene.numbers.of("dataset", dataset)[0]
        except TypeError:
            dataset_number = -number
        self._datasets[number] = dataset_number
        self.scene.emit(
            LoaderMet(
                loader=number,
                name=self._name(site, made),
                dataset=dataset_number,
                dataset_kind=type(dataset).__name__,
                batch_size=loader.batch_size,
                batches=batches,
                shuffled=sampler not in ("SequentialSampler", "NoneType", "_InfiniteConstantSampler"),
                sampler=_order(loader),
                iterable=iterable,
                workers=int(loader.num_workers),
                parts=int(getattr(_sampler(loader), "num_replicas", 1) or 1),
                samples=samples,
                content=content(self.scene.torch, dataset) if samples and ranks.group() is not None else "",
                weights=drawn_from(loader),
                counts=self._counts(loader),
                site=made or site,
            )
        )
        self._places[number] = _places(loader, batches, iterable=iterable)

    def _counts(self, loader: Any) -> tuple[int, int]:
        with self.scene.aside(), self.scene.sampling.timed(None):
            return follow_counts(self.scene, loader)

    @sees
    def drawn(self, iterator: Any, batch: Any, begun: float, now: float) -> None:
        number = getattr(iterator, "_truestep_loader", None)
        if number is None:
            return
        timed = getattr(iterator, "_truestep_pass", None)
        if timed is not None:
            timed.drawn(begun, now)
        self.scene.loader = number
        self.scene.tell(BatchDrawn, loader=number)
        places = getattr(iterator, "_truestep_places", None)
        if places and iterator._num_yielded - 1 in places:
            self._read(number, iterator, batch)

    @sees
    def ended(self, iterator: Any) -> None:
        scene, number = self.scene, getattr(iterator, "_truestep_loader", None)
        if number is None:
            return
        if scene.loader == number:
            scene.loader = None
        scene.tell(LoaderEnded, loader=number)

    def _read(self, number: int, iterator: Any, batch: Any) -> None:
        """Emit the description of a batch, unless it is drawn for an evaluation; read more if it may be useful."""
        scene, place = self.scene, iterator._num_yielded - 1
        if self._reads >= _READS or not scene.torch.is_grad_enabled():
            return
        self._reads += 1
        read = describe(scene.torch, batch)
        if read is not None:
            scene.emit(BatchRead(loader=number, place=place, **read._asdict()))
        if read is not None and read.alike:
            self._places[number] = iterator._truestep_places = iterator._truestep_places | {1, 2}
        elif (read is None or not read.labels) and iterator._num_workers < 2:
            self._places[number] = iterator._truestep_places = frozenset()


def _sampler(loader: Any) -> Any:
    """Return the sampler of a loader; that of its sampler of batches, if it has such a sampler."""
    return getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)


def _epoch(loader: Any) -> int:
    """Return the epoch of a sampler that shuffles by it, or -1."""
    sampler = _sampler(loader)
    epoch = vars(sampler).get("epoch") if hasattr(sampler, "__dict__") else None
    if type(epoch) is not int or not hasattr(type(sampler), "set_epoch") or not vars(sampler).get("shuffle"):
        return -1
    return epoch


def _order(loader: Any) -> str:
    """Return the order in which a loader reads its data set, if its sampler is one of torch's two."""
    from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

    sampler = getattr(loader, "sampler", None)
    batched = getattr(loader, "batch_sampler", None)
    if batched is not None and type(batched) is not BatchSampler:
        return "own"
    if type(sampler) is SequentialSampler:
        return "sequential"
    if type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(loader.dataset):
        return "random"
    return "own"


def _places(loader: Any, batches: int | None, *, iterable: bool) -> frozenset[int]:
    """Return the numbers of the batches to read in a pass: some over its length, and the first two rounds of workers.

    The former show whether labels increase; if they do not, reading stops after the first, since each read keeps the
    run from coasting.
    """
    places = {0}
    if batches and not iterable and _order(loader) == "sequential":
        places |= {batches // 4, batches // 2, 3 * batches // 4, batches - 1}
    workers = int(loader.num_workers)
    if workers > 1 and getattr(loader, "in_order", True):
        places |= {0, 1, workers, workers + 1}
    return frozenset(places)
