"""The settings of a run, checked once."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from truestep.errors import BadSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run can be told.

    Attributes:
        out: the folder for checkpoints, logs and what the run was made with; None writes nothing.
        seed: for python, numpy, torch, the order of the data and every random sample.
        max_epochs: epochs that `run.epochs()` gives; None for no limit.
        max_steps: steps after which every loop ends; None for no limit.
        precision: "auto", "fp32", "bf16" or "fp16" (also "32", "bf16-mixed", "16-mixed").
        accumulate: micro-steps in the window of one update.
        clip_norm: largest norm of the gradients of one optimizer; None for no limit.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        deterministic: use deterministic kernels only; some are slower, and some operations have none and raise.
        resume: "auto" for the newest whole checkpoint in `out`, if there is one; a path for that one; None to begin.
        keep_last: checkpoints kept besides the best one.
        save_every_n_steps: save after every so many steps, besides what `run.save()` asks for.
        asynchronous: write checkpoints in the background, from a copy.
        log_every_n_steps: lines of `run.log()` kept before they are read and written.
        watch: supervise this run as `truestep run` does, and report when it ends.

    Example:
        >>> Settings(max_epochs=3).changed(accumulate=4).accumulate
        4
    """

    out: str | Path | None = None
    seed: int = 0
    max_epochs: int | None = None
    max_steps: int | None = None
    precision: str = "auto"
    accumulate: int = 1
    clip_norm: float | None = None
    device: str = "auto"
    deterministic: bool = False
    resume: str | Path | None = None
    keep_last: int = 3
    save_every_n_steps: int | None = None
    asynchronous: bool = False
    log_every_n_steps: int = 50
    watch: bool = False

    def __post_init__(self) -> None:
        for name in ("max_epochs", "max_steps", "save_every_n_steps", "accumulate", "keep_last", "log_every_n_steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise BadSettings(
                    f"{name} is {value!r}", expected="a whole number of at least 1", remedy=f"pass {name}=1 or more"
                )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise BadSettings(
                f"clip_norm is {self.clip_norm!r}",
                expected="a number above 0, or None",
                remedy="leave clip_norm out for no clipping",
            )
        if self.out is None and (self.resume is not None or self.save_every_n_steps is not None):
            name = "resume" if self.resume is not None else "save_every_n_steps"
            raise BadSettings(
                f"{name} was given, but the run has no folder",
                expected="out=, the folder for checkpoints",
                remedy='pass out="runs/name"',
            )

    def changed(self, **changes: Any) -> Self:
        """Return these settings with some of them changed.

        Raises:
            BadSettings: a name that is none of the settings.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise BadSettings(
                    f'"{name}" is not a setting of a run',
                    expected=f"one of {', '.join(known)}",
                    remedy=f"write {near[0]}=" if near else "leave it out",
                )
        return replace(self, **changes)
