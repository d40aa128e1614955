"""In which order speed-ups are tried, for the budget may end: those of the phases that cost most come first."""

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
"""What gains most often, where nothing else decides."""
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
"""What a speed-up can shorten; those that are not here, what a model computes."""


def in_order(names: list[str], phases: Mapping[str, float]) -> list[str]:
    """Return names of speed-ups, those first that can shorten most of a step.

    Phases are taken in the order of what they cost; a speed-up of several of them comes with the first.

    Args:
        names: of the speed-ups.
        phases: seconds of each phase of a step.

    >>> in_order(["compile", "fused-optimizer", "samples-once"], {"optimizer": 3.0, "forward": 2.0, "data": 0.1})
    ['fused-optimizer', 'compile', 'samples-once']
    """

    def key(name: str) -> tuple[float, int]:
        most = max(phases.get(phase, 0.0) for phase in _PHASES.get(name, _COMPUTES))
        return -most, _LIKELY.index(name) if name in _LIKELY else len(_LIKELY)

    return sorted(names, key=key)
