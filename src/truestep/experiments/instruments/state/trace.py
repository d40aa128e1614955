"""The recorded steps of a run as fingerprints, and the differences between two runs."""

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
"""Titles of random states, by the library or device that holds them."""
_ROUNDING = 1e-5
"""Largest relative difference of two losses that rounding explains."""
_ROUNDED_UPDATE = 1e-2
"""The same for the update of a single weight, relative to the largest update: a thousand times as large."""


@dataclass(frozen=True, slots=True)
class Print:
    """One step of an optimizer: the state before it, and its result.

    Attributes:
        optimizer: its class and a checksum of the shapes of its parameters.
        weights: checksums of the parameters before the step, eight digits each.
        after: checksums after the step.
        sample: values of single weights before the step.
        sample_after: values of the same weights after the step.
        state: checksums of the optimizer's state by key.
        rates: learning rates of its groups.
        settings: other settings of its groups.
        schedules: position of each schedule.
        scalers: state of each gradient scaler.
        buffers: checksums of the buffers of trained modules, by name.
        untrained: checksums of the weights that no optimizer steps on.
        random: checksums of random states.
        put_back: random states that the program has set since its start.
        batches: for each batch since the last step: its checksum, its number in the pass over its loader, and a
            checksum of the indices of its samples (0 if unknown).
        loss: mean of the losses since the last step.
        reads: number of calls of `torch.load` since the start of the program.
        names: names of the parameters; only in the first step.
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
class StateWrite:
    """One write of a file of state.

    Attributes:
        kind: "torch.save", "safetensors" or "rename".
        path: path of the file, relative to the working folder if it lies below it.
        steps: number of finished steps.
    """

    kind: str
    path: str
    steps: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of a run.

    Attributes:
        steps: steps of all optimizers, in the order of time.
        writes: writes of files of state.
    """

    steps: tuple[Print, ...]
    writes: tuple[StateWrite, ...] = ()

    def draws_from(self, state: str) -> bool:
        """Return True if a random state changes during the steps; an unused one need not be restored."""
        return len({step.random.get(state) for step in self.steps}) > 1


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences between the same step of two runs.

    Attributes:
        pieces: pieces of state that differ before or during the step, each with its values in both runs.
        result: True if the weights after the step differ.
    """

    pieces: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    result: bool = False

    @property
    def counts(self) -> bool:
        """True if anything but random states differs: a random state without effect does not count."""
        return self.result or any(not piece.startswith("random") for piece in self.pieces)


def read_trace(path: Path) -> Trace:
    """Read the record of a run; a line that was cut off by a kill is left out."""
    steps: list[Print] = []
    writes: list[StateWrite] = []
    with suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in lines:
            with suppress(ValueError):
                message = json.loads(line)
                if "step" in message:
                    steps.append(Print(**message["step"]))
                else:
                    writes.append(StateWrite(**message["write"], steps=len(steps)))
    return Trace(tuple(steps), tuple(writes))


def compare(one: Print, other: Print) -> Difference:
    """Return the differences between two steps."""
    pieces: dict[str, tuple[Any, Any]] = {}
    for piece in ("schedules", "scalers"):  # an unused one stays alive until garbage collection
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
    """Return the index of the first step that differs, with its differences; None if all steps are equal."""
    for place, (before, after) in enumerate(zip(one, other, strict=False)):
        difference = compare(before, after)
        if difference.counts:
            return place, difference
    return None


def is_rounding(one: Print, other: Print) -> bool:
    """Return True if rounding explains the difference between the results of a step that began from the same state."""
    if one.loss is None or other.loss is None or not math.isclose(one.loss, other.loss, rel_tol=_ROUNDING):
        return False
    moved = [after - before for before, after in zip(one.sample, one.sample_after, strict=True)]
    apart = [a - b for a, b in zip(one.sample_after, other.sample_after, strict=False)]
    most = max(map(abs, moved), default=0.0)
    return all(abs(value) <= _ROUNDED_UPDATE * most for value in apart)


def _some(one: Sequence[object], other: Sequence[object]) -> bool:
    """Return True if one sequence contains all items of the other: a copy may live longer in one of the runs."""
    return set(one) <= set(other) or set(other) <= set(one)


def _both_nan(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
