"""Memory of one device under each strategy, computed from the needs that one process was measured to have.

A moment of a step holds parameters, optimizer state and buffers, the gradients that exist, and the rest: activations
and temporary tensors. The rest does not depend on the strategy if each device has the same batch. Gradients appear
while activations go, so the peak is the largest sum of one moment, and not the sum of the largest values.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple


class Strategy(enum.StrEnum):
    """Division of a training over devices."""

    SINGLE = "single"
    DDP = "DDP"
    FSDP = "FSDP2"


class Moment(NamedTuple):
    """Memory that changes within a step, at one time.

    Attributes:
        gradients: bytes of gradients.
        kept: bytes of activations: allocated before a backward pass.
        working: bytes of everything else, such as temporary tensors of a backward pass or of an optimizer.
    """

    gradients: int
    kept: int
    working: int

    @property
    def rest(self) -> int:
        """Bytes without gradients."""
        return self.kept + self.working


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of one process in one step, in bytes.

    Attributes:
        parameters: all parameters.
        gradients: all gradients, at the end of the backward pass.
        optimizer: state of all optimizers.
        buffers: buffers of the models.
        held: further memory between two steps, such as a data set on the device; known on accelerators only.
        activations: memory kept at the start of a backward pass, without gradients.
        passes: moments of forward and backward passes that can be the peak.
        updates: moments of optimizer steps that can be the peak.
        largest_block: parameters of the largest block that FSDP2 gathers at once.
        outside: parameters outside of all blocks, which FSDP2 gathers for the whole of a step.
        block_gradients: gradients of the largest block.
    """

    parameters: int
    gradients: int
    optimizer: int
    buffers: int
    held: int
    activations: int
    passes: tuple[Moment, ...]
    updates: tuple[Moment, ...]
    largest_block: int
    outside: int
    block_gradients: int


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of one device, in bytes.

    Attributes:
        strategy: division over devices.
        devices: number of devices.
        parameters: parameters, buffers and held data.
        gradients: gradients, at the end of the backward pass.
        optimizer: state of the optimizers.
        activations: memory kept for the backward pass.
        exchange: buffers of the strategy: buckets of DistributedDataParallel, gathered blocks of FSDP2.
        peak: the most memory at one time. Less than the sum of the parts, which are not largest at the same time.
        at_peak: gradients, and activations with temporary tensors, at the time of the peak.
    """

    strategy: Strategy
    devices: int
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    exchange: int
    peak: int
    at_peak: tuple[int, int]


def footprint(needs: Needs, strategy: Strategy, devices: int = 1) -> Footprint:
    """Return the memory of one device, if each device has the batch that was measured.

    DistributedDataParallel copies gradients into buckets, which live from its construction. FSDP2 divides parameters,
    gradients and optimizer state. It gathers the parameters outside of all blocks once, and one block at a time while
    it prefetches the next; in the backward pass the gradients of one block exist undivided, with a copy to send. The
    time of the peak within a block is not known, so all of these count, which is rather too much than too little.

    Args:
        needs: needs of one process.
        strategy: division over devices.
        devices: number of devices, at least 1.

    Example:
        >>> needs = Needs(400, 400, 800, 0, 0, 300, (Moment(0, 300, 0), Moment(400, 0, 50)), (), 40, 0, 40)
        >>> footprint(needs, Strategy.SINGLE).peak
        1650
        >>> footprint(needs, Strategy.FSDP, 4).peak
        760
    """
    parts = devices if strategy is Strategy.FSDP else 1
    exchange = 0
    sent = 0
    if strategy is Strategy.DDP:
        exchange = sent = needs.gradients
    elif strategy is Strategy.FSDP:
        exchange = needs.outside + 2 * needs.largest_block + 2 * needs.block_gradients
    fixed = _part(needs.parameters, parts) + _part(needs.optimizer, parts) + needs.buffers + needs.held
    moments = [
        *((_part(m.gradients, parts), m.rest, exchange) for m in needs.passes),
        # An optimizer steps on the parts of its device; nothing is gathered then.
        *((_part(m.gradients, parts), _part(m.rest, parts), sent) for m in needs.updates),
    ]
    gradients, rest, buffers = max(moments, key=sum, default=(0, 0, 0))
    return Footprint(
        strategy,
        devices,
        _part(needs.parameters, parts) + needs.buffers + needs.held,
        _part(needs.gradients, parts),
        _part(needs.optimizer, parts),
        needs.activations,
        exchange,
        fixed + gradients + rest + buffers,
        (gradients, rest),
    )


def smallest(needs: Needs, memory: int, most: int = 4096) -> int | None:
    """Return the smallest number of devices on which FSDP2 fits into a memory in bytes; None if `most` do not suffice.

    More devices never need more memory each, so it is found by bisection.
    """
    if footprint(needs, Strategy.FSDP, most).peak > memory:
        return None
    low, high = 2, most
    while low < high:
        middle = (low + high) // 2
        if footprint(needs, Strategy.FSDP, middle).peak <= memory:
            high = middle
        else:
            low = middle + 1
    return low


def _part(amount: int, parts: int) -> int:
    """Return the bytes on one of several devices, rounded up."""
    return -(-amount // parts)
