"""What a training holds, from the allocations that torch's profiler noted.

On a CPU the profiler knows the memory that was taken since it began: what was there before (parameters, the state of
optimizers, gradients that are cleared in place) is counted by looking at it. On an accelerator its allocator says what
is held in all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_POINTS = 144
"""As many as there are dots across a chart of 80 columns."""


class Allocation(NamedTuple):
    """One piece of memory taken or given back.

    Attributes:
        time: nanoseconds, of the profiler.
        thread: of the profiler.
        address: where.
        size: bytes; negative where it is given back.
        total: that the allocator holds after it.
    """

    time: int
    thread: int
    address: int
    size: int
    total: int


def allocations(tree: Iterable[Any]) -> dict[str, list[Allocation]]:
    """Return what the profiler noted, by device ("cpu", "cuda:0"), in the order of time.

    Args:
        tree: of `kineto_results.experimental_event_tree()`.
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
    """Return the bytes of parameters, gradients and the state of optimizers, and where the gradients lie."""
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
    """What was held between two times.

    Args:
        noted: of one device.
        start: nanoseconds of the profiler.
        end: likewise.
        base: bytes that were held before the profiler began; None where its totals are those of the device.
    """

    def __init__(self, noted: Sequence[Allocation], start: int, end: int, base: int | None) -> None:
        self.times: list[int] = []
        self.held: list[int] = []
        self.living: dict[int, Allocation] = {}
        """At the time of the peak."""
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
        """Return the most that was held in each of many equal parts of a time, where it was not held before."""
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
        """Return what was held at the peak by where it was taken, the most first.

        Args:
            place_of: where an allocation was made.
        """
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
