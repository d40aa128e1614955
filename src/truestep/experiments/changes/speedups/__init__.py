"""Recommended speed-ups that can be applied from outside: every module of this folder, found by listing it.

`truestep tune --list` shows them. Their base classes are in `changes/parts`.
"""

from __future__ import annotations

from truestep.experiments.changes.parts.discovery import changes_in
from truestep.experiments.changes.parts.speedup import Speedup

SPEEDUPS: dict[str, type[Speedup]] = {
    kind.name: kind
    for kind in sorted(
        (kind for kind in changes_in(__name__) if issubclass(kind, Speedup)), key=lambda kind: kind.stage
    )
}
"""All speed-ups by name, in the order of their installation."""

__all__ = ["SPEEDUPS", "Speedup"]
