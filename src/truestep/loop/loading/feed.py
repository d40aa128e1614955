"""torch's DataLoader, driven by requests: who asks for what decides the order, workers only fetch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info

from truestep.errors import BadLoader, TrueStepError, WorkerDied
from truestep.loop.process.at_exit import closed_at_exit
from truestep.loop.rng.seed import mix


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that fetch: torch's own arguments."""

    num_workers: int = 0
    pin_memory: bool = False
    persistent_workers: bool = True
    prefetch_factor: int | None = None
    timeout: float = 0
    multiprocessing_context: Any = None


class Source(Protocol):
    """What answers requests, in this process or in a worker."""

    def __getitems__(self, request: Any) -> Any:
        """Return the batch that a request asks for."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """How samples become a batch: collated, then transformed.

    Args:
        collate_fn: makes a batch of a list of samples; torch's `default_collate` where None.
        transform: called with the batch's fields (`transform(x, y)`), or with the batch where it is no tuple or list.
    """

    collate_fn: Callable[[list[Any]], Any] | None = None
    transform: Callable[..., Any] | None = None

    def batch(self, samples: list[Any]) -> Any:
        """Collate and transform."""
        return self.transformed((self.collate_fn or default_collate)(samples))

    def transformed(self, batch: Any) -> Any:
        """Transform a batch."""
        if self.transform is None:
            return batch
        return self.transform(*batch) if isinstance(batch, tuple | list) else self.transform(batch)


class Feed:
    """A DataLoader whose workers live as long as it does, and that is asked for something else in every epoch.

    Args:
        source: what answers requests.
        workers: where it answers them.
        seed: what workers are started with; torch's global generator is not drawn from.
        name: the loader's, for messages.
        one_at_a_time: whether an epoch must not go on after another one has begun; always so with workers that stay.
    """

    def __init__(self, source: Source, workers: Workers, seed: int, name: str, *, one_at_a_time: bool = False) -> None:
        self._source = source
        self._workers = workers
        self._seed = mix(seed)
        self._name = name
        stay = workers.num_workers > 0 and workers.persistent_workers
        self._one_at_a_time = one_at_a_time or stay
        self._requests = _Requests()
        self._loader: DataLoader[Any] | None = None
        self._turn = 0

    @closed_at_exit
    def ask(self, requests: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Give the answer to each request, in their order.

        Raises:
            BadLoader: another epoch of the same workers has begun since.
            WorkerDied: a worker was killed, or did not answer in time.
        """
        self._turn += 1
        turn = self._turn
        self._requests.make = requests
        if self._loader is None:
            self._loader = self._open()
        answers: Any = None
        try:
            answers = iter(self._loader)
            while True:
                if self._one_at_a_time and turn != self._turn:
                    raise BadLoader(
                        f"an epoch of loader {self._name!r} went on after its next one had begun",
                        expected="expected one epoch at a time",
                        remedy="make a second loader of the data set",
                    )
                try:
                    answer = next(answers)
                except StopIteration:
                    return
                if isinstance(answer, _Raised):
                    raise answer.error
                yield answer
        except RuntimeError as error:
            happened = str(error)
            if not happened.startswith(("DataLoader worker (pid", "DataLoader timed out")):
                raise
            self.close()
            raise WorkerDied(
                f"a worker of loader {self._name!r} was lost: {happened.splitlines()[0].rstrip('. ')}",
                expected="expected it to answer; a worker that is killed is often out of memory",
                remedy="set num_workers=0 to see what it does, or lower num_workers and prefetch_factor",
            ) from error
        finally:
            if turn == self._turn:  # what holds its own requests would go, workers and all, with the next cycles only
                self._requests.make = tuple
                getattr(answers, "__dict__", {}).pop("_sampler_iter", None)
            if not self._workers.persistent_workers:
                _end_workers(answers)

    def close(self) -> None:
        """End the workers; a later request starts new ones."""
        self._turn += 1
        _end_workers(getattr(self._loader, "_iterator", None))
        self._loader = None

    def _open(self) -> DataLoader[Any]:
        workers = self._workers
        busy: dict[str, Any] = {}
        if workers.num_workers:
            busy = {
                "num_workers": workers.num_workers,
                "persistent_workers": workers.persistent_workers,
                "prefetch_factor": workers.prefetch_factor,
                "timeout": workers.timeout,
                "multiprocessing_context": workers.multiprocessing_context,
                "worker_init_fn": _begin_worker,
            }
        return DataLoader(
            _Answers(self._source),
            batch_sampler=self._requests,
            collate_fn=_unchanged,
            pin_memory=workers.pin_memory,
            generator=torch.Generator().manual_seed(self._seed),
            **busy,
        )


class _Requests:
    """A batch sampler whose batches are requests."""

    make: Callable[[], Iterable[Any]] = tuple

    def __iter__(self) -> Iterator[Any]:
        return iter(self.make())


class _Answers(Dataset[Any]):
    """A data set of one method: a request in, a batch out."""

    def __init__(self, source: Source) -> None:
        self.dataset = source

    def __getitems__(self, request: Any) -> Any:
        try:
            return self.dataset.__getitems__(request)
        except TrueStepError as error:
            if get_worker_info() is None:
                raise
            # torch would make a new error of the text of the traceback, which has lost its parts
            return _Raised(error)


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error of ours on its way from a worker to the main process."""

    error: TrueStepError


def _unchanged(batch: Any) -> Any:
    """Return what the source has collated already, under the batch's own seed."""
    return batch


def _end_workers(answers: Any) -> None:
    """End workers now: when they go with their iterator, a traceback that holds it keeps them alive."""
    end = getattr(answers, "_shutdown_workers", None)
    if callable(end):
        end()


def _begin_worker(worker_id: int) -> None:
    """Leave signals to the whole group (Ctrl-C, systemd, Slurm) to the main process, which may want a batch more.

    What the main process itself sends ends the worker, quietly: a thread waits for SIGTERM, since only that way the
    sender is known. Where there is no such way, torch's handler below Python's ends the worker whoever sends.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None or not hasattr(signal, "sigtimedwait"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_when_told, args=(parent.pid,), daemon=True).start()


def _end_when_told(parent: int) -> None:
    """Wait for the main process's signal, or for its end: torch's own watch over it looks only between two batches."""
    born_of = os.getppid()
    while os.getppid() == born_of:
        told = signal.sigtimedwait({signal.SIGTERM}, 1.0)
        if told is not None and told.si_pid == parent:
            break
    os._exit(0)
