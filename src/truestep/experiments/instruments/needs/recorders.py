"""Two recorders of a storage log: torch's profiler, and a mode that sees operations on tensors without memory."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from truestep.experiments.instruments.needs.storage_log import START, UPDATE, StorageLog
from truestep.experiments.instruments.profiling.memory import allocations

_MARK = "truestep needs: "


class ProfilerRecorder:
    """Records the allocations of one device with torch's profiler, also those inside of operations.

    Attributes:
        earlier: numbers of the gradients at the begin of the measured step, after `stop`.

    Args:
        gradients: storages of the gradients that exist already: the profiler sees neither their allocation nor, on the
            CPU, their release.
    """

    def __init__(self, gradients: Iterable[Any]) -> None:
        self.earlier: set[int] = set()
        self._first = {storage.data_ptr(): storage.nbytes() for storage in gradients}
        self._at_start: set[int] = set()
        self._living: dict[int, int] = {}
        self._profiler = torch.profiler.profile(profile_memory=True)
        self._profiler.start()

    def start_step(self, gradients: Iterable[Any]) -> None:
        """Mark the begin of the measured step.

        Args:
            gradients: storages of the gradients that exist now. Only their addresses are kept, so they can be freed.
        """
        self._at_start = {storage.data_ptr() for storage in gradients}
        self.mark(START)

    def mark(self, name: str) -> None:
        """Mark this time."""
        with torch.profiler.record_function(_MARK + name):
            pass

    def stop(self, device: str, gradients: Iterable[Any]) -> StorageLog:
        """Return the log.

        Args:
            device: such as "cpu" or "cuda:0".
            gradients: storages of the gradients that exist now.
        """
        self._profiler.stop()
        tree = self._profiler.profiler.kineto_results.experimental_event_tree()  # type: ignore[union-attr]
        log, living = StorageLog(), self._living
        noted = allocations(tree).get(device, [])
        made = {note.address for note in noted if note.size > 0}
        for storage in gradients:  # those that the script clears in place
            address = storage.data_ptr()
            if address in self._first and address not in made:
                living[address] = log.allocate(self._first[address])
        notes: list[tuple[int, int, Any]] = [(time, 0, name) for time, name in _marks(tree)]
        notes += [(note.time, 1, note) for note in noted]
        for _, _, note in sorted(notes, key=lambda entry: entry[:2]):
            if isinstance(note, str):
                log.mark(note)
                if note == START:
                    self.earlier = {number for address, number in living.items() if address in self._at_start}
            elif note.size > 0:
                living[note.address] = log.allocate(note.size)
            elif note.address in living:
                log.release(living.pop(note.address))
        return log

    def numbers(self, storages: Iterable[Any]) -> set[int]:
        """Return the numbers of the storages that were allocated while it recorded, after `stop`."""
        addresses = {storage.data_ptr() for storage in storages}
        return {number for address, number in self._living.items() if address in addresses}


def _marks(tree: Iterable[Any]) -> Iterable[tuple[int, str]]:
    left = list(tree)
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.name.startswith(_MARK):
            yield event.start_time_ns, event.name.removeprefix(_MARK)


class FakeRecorder(TorchDispatchMode):
    """Records the storages that operations return, inside of a `FakeTensorMode`: their sizes, but no memory.

    Values are read from tensors by optimizers (the number of steps) and while a model is made (rates from a
    `torch.linspace`). They get a constant while `reads` is True or an optimizer steps; elsewhere, reading is an error.
    Memory inside of one operation, such as the workspace of a convolution, is not seen.

    Attributes:
        earlier: numbers of the gradients at the begin of the measured step.
        reads: True answers any reading of a value.
    """

    active: ClassVar[list[FakeRecorder]] = []
    """Recorders that are entered, the innermost last."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.earlier: set[int] = set()
        self.reads = False
        self._log = StorageLog()
        self._numbers: dict[int, int] = {}
        self._updating = False

    def __enter__(self) -> FakeRecorder:
        self.active.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: Any) -> None:
        self.active.remove(self)
        super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (self._updating or self.reads) and func is torch.ops.aten._local_scalar_dense.default:
            # Between 0 and 1: neither a divisor nor one minus its power is 0. False ends loops that draw again.
            return 0.5 if args[0].is_floating_point() else int(args[0].dtype != torch.bool)
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self._see(leaf.untyped_storage())
        return result

    def _see(self, storage: Any) -> None:
        key = storage._cdata
        if key not in self._numbers:
            self._numbers[key] = self._log.allocate(storage.nbytes())
            weakref.finalize(storage, functools.partial(self._released, key)).atexit = False

    def _released(self, key: int) -> None:
        self._log.release(self._numbers.pop(key))

    def start_step(self, gradients: Iterable[Any]) -> None:
        """Mark the begin of the measured step.

        Args:
            gradients: storages of the gradients that exist now.
        """
        self.earlier = self.numbers(gradients)
        self.mark(START)

    def mark(self, name: str) -> None:
        """Mark this place of the log."""
        self._updating = name == UPDATE
        self._log.mark(name)

    def stop(self, device: str, gradients: Iterable[Any]) -> StorageLog:
        """Return the log; fake tensors share one device, and all of them were seen."""
        return self._log

    def numbers(self, storages: Iterable[Any]) -> set[int]:
        """Return the numbers of storages."""
        return {self._numbers[storage._cdata] for storage in storages if storage._cdata in self._numbers}
