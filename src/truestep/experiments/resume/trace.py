"""What fingerprints say about a run, step by step, and where two runs differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RANDOM = {
    "torch": "the random state of torch",
    "accelerator": "the random state of the accelerator",
    "python": "the random state of python",
    "numpy": "the random state of numpy",
}
"""Names of random states, by what keeps them."""
_ROUNDING = 1e-5
"""Largest relative difference of two losses that rounding explains."""
_ROUNDED_UPDATE = 1e-2
"""Likewise of what a step adds to single weights, which are a thousand times as large."""


@dataclass(frozen=True, slots=True)
class Print:
    """One step of an optimizer: what was there before it, and what came out.

    Attributes:
        optimizer: its class and a checksum of the shapes that it steps on.
        weights: checksums of them before the step, eight digits for each.
        after: likewise after it.
        sample: single weights before the step.
        sample_after: the same ones after it.
        state: checksums of the optimizer's state by key.
        rates: learning rates of its groups.
        settings: what else its groups hold.
        schedules: where each schedule is.
        scalers: where each scaler of gradients is.
        buffers: checksums of the buffers of trained modules, by name.
        untrained: checksums of what no optimizer steps on.
        random: checksums of random states.
        put_back: random states that the program has set since it began.
        batches: of each batch drawn since the last step its checksum, its number in a pass over its loader, and a
            checksum of the indices of its samples, 0 where they are not known.
        loss: mean of the losses since the last step.
        reads: calls of `torch.load` since the program began.
        names: of the parameters, where this is the first step.
    """

    optimizer: str
    weights: str
    after: str
    sample: Sequence[float]
    sample_after: Sequence[float]
    state: Mapping[str, int]
    rates: Sequence[float]
    settings: Sequence[Mapping[str, str]]
    schedules: Sequence[str]
    scalers: Sequence[str]
    buffers: Mapping[str, Sequence[int]]
    untrained: Mapping[str, Sequence[int]]
    random: Mapping[str, int]
    put_back: Sequence[str]
    batches: Sequence[Sequence[int]]
    loss: float | None
    reads: int
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a file of state.

    Attributes:
        kind: "torch.save", "safetensors" or "rename".
        path: from the working folder on, where it lies below it.
        steps: how many steps were done.
    """

    kind: str
    path: str
    steps: int


@dataclass(frozen=True, slots=True)
class Trace:
    """A run.

    Attributes:
        steps: of all optimizers, in their order.
        writes: of files of state.
    """

    steps: tuple[Print, ...]
    writes: tuple[Write, ...] = ()

    def draws_from(self, state: str) -> bool:
        """Whether a random state moves during the steps: what nobody draws from need not be restored."""
        return len({step.random.get(state) for step in self.steps}) > 1


@dataclass(frozen=True, slots=True)
class Difference:
    """How a step of one run differs from that of another.

    Attributes:
        pieces: what differs before or during the step, each with what the two runs hold: (this one, the other one).
        result: whether the weights after it differ.
    """

    pieces: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    result: bool = False

    @property
    def counts(self) -> bool:
        """Whether anything differs that is a result: random states that move nothing are none."""
        return self.result or any(not piece.startswith("random") for piece in self.pieces)


def read_trace(path: Path) -> Trace:
    """Read the lines of a run; one that a kill cut off is left out.

    Args:
        path: of `prints.jsonl`.
    """
    steps: list[Print] = []
    writes: list[Write] = []
    with suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in lines:
            with suppress(ValueError):
                told = json.loads(line)
                if "step" in told:
                    steps.append(Print(**told["step"]))
                else:
                    writes.append(Write(**told["write"], steps=len(steps)))
    return Trace(tuple(steps), tuple(writes))


def compare(one: Print, other: Print) -> Difference:
    """Say what differs between two steps.

    Args:
        one: of the uninterrupted run.
        other: of the one that was resumed.
    """
    pieces: dict[str, tuple[Any, Any]] = {}
    for piece in ("schedules", "scalers"):  # one that is not used any more lives on until it is collected
        before, after = getattr(one, piece), getattr(other, piece)
        if not _some(before, after):
            pieces[piece] = (before, after)
    for piece in ("weights", "state", "rates", "settings", "loss"):
        before, after = getattr(one, piece), getattr(other, piece)
        if before != after and not (piece == "loss" and _both_nan(before, after)):
            pieces[piece] = (before, after)
    for piece in ("buffers", "untrained"):
        before, after = getattr(one, piece), getattr(other, piece)
        names = [name for name in before if name in after and not _some(before[name], after[name])]
        if names:
            pieces[piece] = (names, names)
    for state in RANDOM:
        if one.random.get(state) != other.random.get(state) and state in one.random and state in other.random:
            pieces[f"random {state}"] = (state, state)
    common = min(len(one.batches), len(other.batches))
    if common and [b[0] for b in one.batches[-common:]] != [b[0] for b in other.batches[-common:]]:
        pieces["batches"] = (one.batches, other.batches)
    return Difference(pieces, one.after != other.after)


def first_difference(one: Sequence[Print], other: Sequence[Print]) -> tuple[int, Difference] | None:
    """Return the place of the first step that differs, and how; None where there is none.

    Args:
        one: steps of the uninterrupted run.
        other: steps that should be the same ones.
    """
    for place, (before, after) in enumerate(zip(one, other, strict=False)):
        difference = compare(before, after)
        if difference.counts:
            return place, difference
    return None


def is_rounding(one: Print, other: Print) -> bool:
    """Whether the results of a step that begins from the same state lie as far apart as rounding puts them.

    Args:
        one: of the uninterrupted run.
        other: of the one that was resumed.
    """
    if one.loss is None or other.loss is None or not math.isclose(one.loss, other.loss, rel_tol=_ROUNDING):
        return False
    moved = [after - before for before, after in zip(one.sample, one.sample_after, strict=True)]
    apart = [a - b for a, b in zip(one.sample_after, other.sample_after, strict=False)]
    most = max(map(abs, moved), default=0.0)
    return all(abs(value) <= _ROUNDED_UPDATE * most for value in apart)


def _some(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether all of what the one that has less holds is in the other: a copy may live longer in one of the runs."""
    return set(one) <= set(other) or set(other) <= set(one)


def _both_nan(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
