"""The order in which speed-ups are tried: those for the most costly phases first, since the budget may run out."""

from __future__ import annotations

from collections.abc import Mapping

_LIKELY = (
    "whole-batches",
    "samples-once",
    "loader-workers",
    "fused-optimizer",
    "tf32",
    "bf16-autocast",
    "compile",
    "channels-last",
    "pin-memory",
    "one-thread",
    "activation-checkpointing",
)
"""Speed-ups that gain most often: the order of those for the same phase."""
_COMPUTES = ("forward", "backward", "other")
_PHASES = {
    "fused-optimizer": ("optimizer",),
    "foreach-optimizer": ("optimizer",),
    "set-to-none": ("optimizer",),
    "inference-mode": ("evaluation",),
    "pin-memory": ("data",),
    "non-blocking": ("data",),
    "persistent-workers": ("data",),
    "prefetch": ("data",),
    "loader-workers": ("data",),
    "whole-batches": ("data",),
    "samples-once": ("data",),
    "one-thread": (*_COMPUTES, "optimizer"),
    "all-threads": (*_COMPUTES, "optimizer"),
}
"""The phases that a speed-up can shorten; a speed-up that is not listed shortens `_COMPUTES`."""


def in_order(names: list[str], phases: Mapping[str, float]) -> list[str]:
    """Return names of speed-ups, sorted such that those that can shorten most of a step come first.

    Phases are sorted by their time, the longest first; a speed-up for several phases is placed with the longest.

    Args:
        names: names of the speed-ups.
        phases: seconds of each phase of a step.

    >>> in_order(["compile", "fused-optimizer", "samples-once"], {"optimizer": 3.0, "forward": 2.0, "data": 0.1})
    ['fused-optimizer', 'compile', 'samples-once']
    """

    def key(name: str) -> tuple[float, int]:
        most = max(phases.get(phase, 0.0) for phase in _PHASES.get(name, _COMPUTES))
        return -most, _LIKELY.index(name) if name in _LIKELY else len(_LIKELY)

    return sorted(names, key=key)
