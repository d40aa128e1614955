"""Find the first operation with different results in two recordings of the same step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Recorded = tuple[str, str, int, int]
"""Name of an operation, line of the program, checksums of its inputs and of its results."""

_DRAWS = ("rand", "uniform", "normal", "bernoulli", "dropout", "multinomial", "exponential", "cauchy", "geometric")


@dataclass(frozen=True, slots=True)
class FirstOperation:
    """The first operation that differs.

    Attributes:
        name: its name in torch, such as "aten.uniform_".
        line: the nearest line of the program, as "train.py:12"; "" if unknown.
        why: "draws" for an operation that draws random numbers, "given" if its inputs differ already, "computes" if
            equal inputs have different results, and "other" if the runs call different operations.
    """

    name: str
    line: str
    why: str

    def __str__(self) -> str:
        at = f" at {self.line}" if self.line else ""
        if self.why == "other":
            return f"the operations differ from {self.name} on{at}"
        if self.why == "draws":
            return f"{self.name} draws other random numbers{at}"
        if self.why == "given":
            return f"other values, which torch did not compute, enter {self.name}{at}"
        return f"{self.name} has other results from the same inputs{at}"


def read(path: Path) -> list[Recorded]:
    """Return the recorded operations; [] without a file."""
    found: list[Recorded] = []
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as lines:
        for line in lines:
            name, place, given, result = json.loads(line)
            found.append((name, place, given, result))
    return found


def first_operation(one: Sequence[Recorded], other: Sequence[Recorded]) -> FirstOperation | None:
    """Return the first operation that differs; None if all are equal.

    >>> draw = ("aten.uniform_.default", "train.py:3", 0, 7)
    >>> str(first_operation([draw], [(*draw[:3], 8)]))
    'aten.uniform_ draws other random numbers at train.py:3'
    """
    for before, after in zip(one, other, strict=False):
        if before[0] == after[0] and before[3] == after[3]:
            continue  # inputs alone can differ in memory that is overwritten
        name, line = ".".join(before[0].split(".")[:2]), before[1]
        if before[0] != after[0]:
            return FirstOperation(name, line, "other")
        if before[3] != after[3] and any(word in name for word in _DRAWS):
            return FirstOperation(name, line, "draws")
        return FirstOperation(name, line, "computes" if before[2] == after[2] else "given")
    if len(one) != len(other):
        name, line, *_ = (one if len(one) > len(other) else other)[min(len(one), len(other))]
        return FirstOperation(".".join(name.split(".")[:2]), line, "other")
    return None
