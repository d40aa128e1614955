"""The families of errors, by torch's messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from truestep.findings import PostMortem
from truestep.postmortem import (
    anomaly,
    batch_of_one,
    in_place,
    labels,
    memory,
    places,
    roots,
    second_backward,
    shapes,
    states,
)
from truestep.postmortem.evidence.crash import Crash, TooLong

if TYPE_CHECKING:
    from truestep.probes import Scene


@dataclass(frozen=True, slots=True)
class Family:
    """Errors with the same explanation."""

    pattern: re.Pattern[str]
    """Matches torch's message."""
    explain: Callable[[Crash, re.Match[str]], PostMortem | None]
    kinds: tuple[type[BaseException], ...] = (RuntimeError,)


FAMILIES = [
    Family(re.compile(in_place.MESSAGE), in_place.explain),
    Family(re.compile(second_backward.MESSAGE), second_backward.explain),
    Family(re.compile(shapes.PRODUCT), shapes.product),
    Family(re.compile(shapes.CHANNELS), shapes.channels),
    Family(re.compile(shapes.ROWS), shapes.rows, (ValueError,)),
    Family(re.compile(shapes.BROADCAST), shapes.broadcast),
    Family(re.compile(places.MESSAGE), places.explain, (RuntimeError, ValueError)),
    Family(re.compile(labels.LABEL), labels.label, (IndexError,)),
    Family(re.compile(labels.ROW), labels.row, (IndexError,)),
    Family(re.compile(roots.NOT_SCALAR), roots.not_scalar),
    Family(re.compile(roots.NO_GRAPH), roots.no_graph),
    Family(re.compile(batch_of_one.MESSAGE), batch_of_one.explain, (ValueError,)),
    Family(re.compile(memory.CPU), memory.explain, memory.KINDS),
    Family(re.compile(memory.CUDA), memory.explain, memory.KINDS),
    Family(re.compile(states.MESSAGE), states.explain),
    Family(re.compile(anomaly.MESSAGE), anomaly.explain),
]


def explain(error: BaseException, scene: Scene) -> PostMortem | None:
    """Return the post-mortem from the family that matches an error; None if no family does, or if it took too long."""
    message = error.args[0] if error.args else None
    if type(message) is not str:
        return None
    for family in FAMILIES:
        match = family.pattern.search(message) if type(error) in family.kinds else None
        if match is None:
            continue
        try:
            with torch._C.DisableTorchFunction():
                crash = Crash(error, scene)
                if not crash.frames or crash.raised_by_user:
                    return None
                died = family.explain(crash, match)
        except TooLong:
            return None
        first = next((line for line in message.splitlines() if line.strip()), "")
        return None if died is None else replace(died, error=f"{type(error).__name__}: {first}"[:400])
    return None
