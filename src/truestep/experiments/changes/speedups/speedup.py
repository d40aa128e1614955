"""Base class of speed-ups: changes that a script could make itself, with the lines for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from truestep.experiments.changes.parts.change import Change


class Tuning(Change):
    """One recommended speed-up, made from outside.

    Attributes:
        summary: its effect, in one line.
        lines: what to write into the script for it.
        tolerance: how far losses may lie from those without it, as a part of their mean; 0 where they must be equal.
        accelerator: whether it makes sense on an accelerator only.
        on_request: whether it is tried only when it is asked for by name.
        saves: "time" or "memory".
        follows: speed-ups without which it does nothing in most scripts: it is tried on top of them.
        excludes: speed-ups that it makes no sense together with.
        checked: arguments with which its losses are comparable, where its own are not.
        factor: samples in a step, compared with the script's.
    """

    summary: ClassVar[str]
    lines: ClassVar[str]
    tolerance: ClassVar[float] = 0.0
    accelerator: ClassVar[bool] = False
    on_request: ClassVar[bool] = False
    saves: ClassVar[str] = "time"
    follows: ClassVar[tuple[str, ...]] = ()
    excludes: ClassVar[tuple[str, ...]] = ()
    checked: ClassVar[Mapping[str, Any]] = {}
    factor: ClassVar[float] = 1.0
