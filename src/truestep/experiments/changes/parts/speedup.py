"""Base class of speed-ups: changes that a script could make itself, with the lines for it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, ClassVar

from truestep.experiments.changes.parts.change import Change


class Stage(enum.IntEnum):
    """Order of installation. A later stage wraps the patches of earlier ones, so it sees the script's call first."""

    OPTIMIZER = 1
    SWITCHES = 2
    LOADER = 3
    WORKERS = 4
    BATCHES = 5
    MODEL = 6
    COMPILER = 7
    CALLS = 8


class Speedup(Change):
    """One recommended speed-up, applied from outside.

    Attributes:
        summary: its effect, in one line.
        lines: lines to write into the script for it.
        phases: phases of a step that it can shorten; speed-ups for the longest phase are tried first.
        priority: among speed-ups for the same phase, those with a higher number are tried first: they gain most often.
        stage: place in the order of installation.
        tolerance: largest deviation of the losses from those without it, relative to their mean; 0 if they must be
            equal.
        accelerator: True if it has an effect on accelerators only.
        cpu: True if it has an effect on the CPU only.
        on_request: True if it is tried only when it is requested by name.
        compiles: True if the script's code is compiled: other changes do not reach into it, and the argument `cache` is
            the folder for compiled code.
        combines: True if it can be installed together with all others of this kind, so that a single run shows which
            of them apply to a script. Others are tried one by one.
        saves: "time" or "memory".
        follows: names of speed-ups without which it has no effect in most scripts: it is tried on top of them.
        excludes: names of speed-ups that it cannot be combined with; declared on one of the two.
        checked: arguments with which its losses can be compared, if its own cannot.
        factor: number of samples in a step, relative to the script's.
    """

    summary: ClassVar[str]
    lines: ClassVar[str]
    phases: ClassVar[tuple[str, ...]] = ("forward", "backward", "other")
    priority: ClassVar[int] = 0
    stage: ClassVar[Stage] = Stage.CALLS
    tolerance: ClassVar[float] = 0.0
    accelerator: ClassVar[bool] = False
    cpu: ClassVar[bool] = False
    on_request: ClassVar[bool] = False
    compiles: ClassVar[bool] = False
    combines: ClassVar[bool] = False
    saves: ClassVar[str] = "time"
    follows: ClassVar[tuple[str, ...]] = ()
    excludes: ClassVar[tuple[str, ...]] = ()
    checked: ClassVar[Mapping[str, Any]] = {}
    factor: ClassVar[float] = 1.0
