"""torch's DataLoader, driven by requests: the main process decides the order, and workers only fetch."""

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
    """Arguments of torch's DataLoader on its workers."""

    num_workers: int = 0
    pin_memory: bool = False
    persistent_workers: bool = True
    prefetch_factor: int | None = None
    timeout: float = 0
    multiprocessing_context: Any = None


class Source(Protocol):
    """Answers requests, in this process or in a worker."""

    def __getitems__(self, request: Any) -> Any:
        """Return the batch of a request."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """Collation of samples to a batch, followed by the transform.

    Args:
        collate_fn: turns a list of samples into a batch; None for torch's `default_collate`.
        transform: called with the batch's fields (`transform(x, y)`), or with the batch if it is not a tuple or list.
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
    """A DataLoader with long-lived workers, which gets other requests in every epoch.

    Args:
        source: answers the requests.
        workers: arguments on the workers.
        seed: seed of the workers; torch's global generator is not used.
        name: name of the loader, for messages.
        one_at_a_time: raise an error if an epoch continues after another one has started; always so with persistent
            workers.
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
    def request(self, requests: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Yield the answer to each request, in their order.

        Raises:
            BadLoader: another epoch of the same workers has started since.
            WorkerDied: a worker was killed or timed out.
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
                        f"an epoch of loader {self._name!r} continued after its next one had started",
                        expected="expected one epoch at a time",
                        remedy="create a second loader of the data set",
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
                expected="expected an answer; a killed worker is often out of memory",
                remedy="set num_workers=0 to see the error, or lower num_workers and prefetch_factor",
            ) from error
        finally:
            if turn == self._turn:  # break the reference cycle, which would keep the workers until garbage collection
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
    """A batch sampler that yields requests."""

    make: Callable[[], Iterable[Any]] = tuple

    def __iter__(self) -> Iterator[Any]:
        return iter(self.make())


class _Answers(Dataset[Any]):
    """A data set that returns the batch of a request."""

    def __init__(self, source: Source) -> None:
        self.dataset = source

    def __getitems__(self, request: Any) -> Any:
        try:
            return self.dataset.__getitems__(request)
        except TrueStepError as error:
            if get_worker_info() is None:
                raise
            # torch would create a new error from the text of the traceback, without `expected` and `remedy`
            return _Raised(error)


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error of truestep, passed from a worker to the main process."""

    error: TrueStepError


def _unchanged(batch: Any) -> Any:
    """Return the batch, which the source has already collated under the batch's own seed."""
    return batch


def _end_workers(answers: Any) -> None:
    """End workers now, not with their iterator, which a traceback can keep alive."""
    end = getattr(answers, "_shutdown_workers", None)
    if callable(end):
        end()


def _begin_worker(worker_id: int) -> None:
    """Ignore signals to the whole process group (Ctrl-C, systemd, Slurm): the main process may need one more batch.

    Only SIGTERM from the main process ends the worker. A thread waits for it with `sigtimedwait`, which reports the
    sender; on platforms without it, torch's C handler ends the worker for any sender.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None or not hasattr(signal, "sigtimedwait"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, args=(parent.pid,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """Exit on the main process's signal, or at its end, which torch checks only between two batches."""
    born_of = os.getppid()
    while os.getppid() == born_of:
        received = signal.sigtimedwait({signal.SIGTERM}, 1.0)
        if received is not None and received.si_pid == parent:
            break
    os._exit(0)
