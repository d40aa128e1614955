"""Order of the trials: speed-ups for the longest phases first, since the budget may run out."""

from __future__ import annotations

from collections.abc import Mapping

from truestep.experiments.changes.speedups import SPEEDUPS


def in_order(names: list[str], phases: Mapping[str, float]) -> list[str]:
    """Return names of speed-ups, sorted such that those that can shorten most of a step come first.

    Phases are sorted by their time, the longest first; a speed-up for several phases is placed with the longest.
    Speed-ups with the same place are sorted by priority.

    >>> in_order(["compile", "fused-optimizer", "samples-once"], {"optimizer": 3.0, "forward": 2.0, "data": 0.1})
    ['fused-optimizer', 'compile', 'samples-once']
    """

    def key(name: str) -> tuple[float, int]:
        speedup = SPEEDUPS[name]
        return -max(phases.get(phase, 0.0) for phase in speedup.phases), -speedup.priority

    return sorted(names, key=key)
