"""Memory of a training, from the allocations that torch's profiler recorded.

On a CPU the profiler knows only allocations since its start: earlier memory (parameters, optimizer state, gradients
that are cleared in place) is measured on the tensors. On an accelerator, its allocator reports the total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_POINTS = 144
"""Points of a curve: the dots across a chart of 80 columns."""


class Allocation(NamedTuple):
    """One allocation or release of memory.

    Attributes:
        time: nanoseconds on the profiler's clock.
        thread: id of the thread in the profiler.
        address: address of the memory.
        size: bytes; negative for a release.
        total: bytes that the allocator holds afterwards.
    """

    time: int
    thread: int
    address: int
    size: int
    total: int


def allocations(tree: Iterable[Any]) -> dict[str, list[Allocation]]:
    """Return the recorded allocations by device ("cpu", "cuda:0"), in the order of time.

    Args:
        tree: result of `kineto_results.experimental_event_tree()`.
    """
    found: dict[str, list[Allocation]] = defaultdict(list)
    left = list(tree)
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.tag.name == "Allocation":
            fields = event.extra_fields
            made = Allocation(
                event.start_time_ns, event.start_tid, fields.ptr, fields.alloc_size, fields.total_allocated
            )
            found[str(fields.device)].append(made)
    for listed in found.values():
        listed.sort()
    return found


def held(models: Iterable[Any], optimizers: Iterable[Any]) -> dict[str, Any]:
    """Return the bytes of parameters, gradients and optimizer state, and the addresses and sizes of the gradients."""
    import torch

    parameters: dict[int, Any] = {}
    state = 0
    for model in models:
        for tensor in (*model.parameters(), *model.buffers()):
            parameters[id(tensor)] = tensor
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parameters.update((id(tensor), tensor) for tensor in group["params"])
        for values in optimizer.state.values():
            state += sum(_size(value) for value in values.values() if isinstance(value, torch.Tensor))
    gradients = {}
    for tensor in parameters.values():
        if tensor.is_leaf and tensor.grad is not None:
            gradients[_address(tensor.grad)] = _size(tensor.grad)
    return {
        "parameters": sum(map(_size, parameters.values())),
        "gradients": sum(gradients.values()),
        "optimizer": state,
        "where": gradients,
    }


class Timeline:
    """Memory held between two times.

    Args:
        noted: allocations of one device.
        start: nanoseconds on the profiler's clock.
        end: nanoseconds on the profiler's clock.
        base: bytes that were held before the profiler began; None if its totals are those of the device.
    """

    def __init__(self, noted: Sequence[Allocation], start: int, end: int, base: int | None) -> None:
        self.times: list[int] = []
        self.held: list[int] = []
        self.living: dict[int, Allocation] = {}
        """Allocations alive at the peak, by address."""
        self.peak = self.at = 0
        living: dict[int, Allocation] = {}
        running = 0
        for note in noted:
            if note.time >= end:
                break
            if note.size > 0:
                living[note.address] = note
                running += note.size
            else:
                taken = living.pop(note.address, None)
                running -= taken.size if taken is not None else 0
            if note.time < start:
                continue
            total = note.total if base is None else base + running
            self.times.append(note.time)
            self.held.append(total)
            if total > self.peak:
                self.peak, self.at, self.living = total, note.time, dict(living)
        self.last = self.held[-1] if self.held else 0

    def curve(self, start: int, end: int) -> list[int]:
        """Return the peak in bytes of each of 144 equal parts of a time span; [] without allocations."""
        if not self.times:
            return []
        found: list[int] = []
        index, now = 0, self.held[0]
        for part in range(_POINTS):
            until = start + (end - start) * (part + 1) // _POINTS
            most = now
            while index < len(self.times) and self.times[index] < until:
                now = self.held[index]
                most = max(most, now)
                index += 1
            found.append(most)
        return found

    def owners(self, place_of: Callable[[Allocation], Any]) -> list[tuple[Any, int]]:
        """Return the bytes held at the peak by place of allocation, the largest first."""
        found: defaultdict[Any, int] = defaultdict(int)
        for note in self.living.values():
            found[place_of(note)] += note.size
        return sorted(found.items(), key=lambda item: -item[1])


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size()) if str(tensor.layout) == "torch.strided" else 0


def _address(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return 0
