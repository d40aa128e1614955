"""The settings of a run, checked once."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from truestep.errors import BadSettings
from truestep.loop.settings.limits import seconds


def _watch() -> bool:
    return os.environ.get("TRUESTEP_WATCH", "1").lower() not in ("0", "false", "no", "off")


@dataclass(kw_only=True)
class Settings:
    """What a run can be told.

    A program extends it by its own settings, in a dataclass; each is then a flag of the program, see `from_flags`. A
    run takes them as they are when it is made: those of `run.settings` cannot be set.

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
        resume: "auto" for the newest whole checkpoint in `out`, if there is one; the path of another run or checkpoint
            to begin where that one was, with its step, epoch and optimizers (started again, the run goes on with its
            own checkpoints); None for a new run.
        init_from: a run, a checkpoint or a file that the models of a new run take their weights from, and nothing else;
            not read where the run resumes.
        keep_last: checkpoints kept besides the best one.
        save_every_n_steps: save after every so many steps, besides what `run.save()` asks for.
        save_every_n_minutes: save after the step at which the last checkpoint is so many minutes old.
        max_time: save and end this process after so many seconds, or after a time such as "00:12:00:00" (days, hours,
            minutes, seconds); a process that resumes the run has the same time again.
        on_sigusr1: what follows after saving when SIGUSR1 comes, which Slurm sends ahead of a time limit: "end" (exit
            code 138), "requeue" (the same, after `scontrol requeue`) or "save" (go on).
        asynchronous: write checkpoints in the background, from a copy.
        log_every_n_steps: lines of `run.log()` kept before they are read and written.
        progress: show how far the run is, on the error stream: a line at the bottom of a terminal, few lines elsewhere.
        trackers: where the log is copied to, besides `metrics.jsonl`: of "tensorboard", "wandb" and "mlflow".
        alerts: watch the loss, the norm of the gradients and the validation loss, and tell when something is wrong.
        watch: supervise this run as `truestep run` does, and report when it ends; on, unless the environment
            has TRUESTEP_WATCH=0.

    Example:
        >>> @dataclass
        ... class Lab(Settings):
        ...     lr: float = 1e-3
        >>> Lab(max_epochs=3).changed(accumulate=4).accumulate
        4
        >>> Lab.from_flags(args=["--lr", "3e-4"]).lr
        0.0003
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
    init_from: str | Path | None = None
    keep_last: int = 3
    save_every_n_steps: int | None = None
    save_every_n_minutes: float | None = None
    max_time: str | float | None = None
    on_sigusr1: str = "end"
    asynchronous: bool = False
    log_every_n_steps: int = 50
    progress: bool = True
    trackers: tuple[str, ...] = ()
    alerts: bool = True
    watch: bool = field(default_factory=_watch)

    def __post_init__(self) -> None:
        self.check_fields()
        for name in ("max_epochs", "max_steps", "save_every_n_steps", "accumulate", "keep_last", "log_every_n_steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise BadSettings(
                    f"{name} is {value!r}", expected="a whole number of at least 1", remedy=f"pass {name}=1 or more"
                )
        number = isinstance(self.clip_norm, int | float) and not isinstance(self.clip_norm, bool)
        if self.clip_norm is not None and not (number and self.clip_norm > 0):
            raise BadSettings(
                f"clip_norm is {self.clip_norm!r}",
                expected="a number above 0, or None",
                remedy="leave clip_norm out for no clipping",
            )
        if self.init_from is not None and self.resume not in (None, "auto"):
            raise BadSettings(
                "resume and init_from both name where the run begins",
                expected=f"one of them, got resume={str(self.resume)!r} and init_from={str(self.init_from)!r}",
                remedy='pass init_from= for its weights alone, with resume="auto" for a job that is started again',
            )
        if self.save_every_n_minutes is not None and not self.save_every_n_minutes > 0:
            raise BadSettings(
                f"save_every_n_minutes is {self.save_every_n_minutes!r}",
                expected="a number above 0, or None",
                remedy="pass save_every_n_minutes=10",
            )
        if self.max_time is not None:
            seconds(self.max_time, "max_time")
        if self.on_sigusr1 not in ("end", "requeue", "save"):
            raise BadSettings(
                f'on_sigusr1 is "{self.on_sigusr1}"',
                expected='"end", "requeue" or "save"',
                remedy='pass on_sigusr1="end"',
            )
        needing = ("resume", "save_every_n_steps", "save_every_n_minutes", "max_time")
        given = [name for name in needing if getattr(self, name) is not None]
        if self.out is None and given:
            raise BadSettings(
                f"{given[0]} was given, but the run has no folder",
                expected="out=, the folder for checkpoints",
                remedy='pass out="runs/name"',
            )

    @classmethod
    def from_flags(cls, *, args: Sequence[str] | None = None, **defaults: Any) -> Self:
        """Return settings as the program was called: each field is a flag, and `--config FILE` reads a file.

        Later ones win: the defaults of the class, `defaults`, the file (TOML, or the settings.json of a run), the
        variables `TRUESTEP_<NAME>`, the flags. Names that other trainers use are flags, too (`--max-grad-norm`).

        Args:
            args: the flags; None for those of the process.
            **defaults: values over the defaults of the class.

        Raises:
            BadSettings: one of `defaults` is none of the settings, or the class is no dataclass.
            PackageMissing: tyro, which reads flags, is not installed.
            SystemExit: a flag, the file or a variable is wrong (exit code 2, with the reason on the error stream), or
                `--help` was asked for.
        """
        from truestep.loop.settings.flags import read_settings

        return read_settings(cls, defaults, args)

    def changed(self, **changes: Any) -> Self:
        """Return these settings with some of them changed.

        Raises:
            BadSettings: a name that is none of the settings.
        """
        self.check_names(changes, "write {}=")
        return replace(self, **changes)

    def sealed(self) -> Self:
        """Return a copy that cannot be changed: what a run was made with."""
        copy = replace(self)
        object.__setattr__(copy, "_sealed", True)
        return copy

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_sealed", False):
            raise BadSettings(
                f"{name} was set when its run was made already",
                expected="settings that are complete before the run begins",
                remedy=f"set {name} before Run(settings), or keep what changes in run.state",
            )
        super().__setattr__(name, value)

    @classmethod
    def check_fields(cls) -> None:
        """Refuse a class whose annotations are no fields, because nobody made a dataclass of it.

        Raises:
            BadSettings: the decorator is missing.
        """
        known = {field.name for field in fields(cls)}
        for name in inspect.get_annotations(cls):
            if name not in known and not name.startswith("_"):
                raise BadSettings(
                    f"{name} of {cls.__name__} is not a setting, because {cls.__name__} is no dataclass",
                    expected="a dataclass that extends truestep.Settings",
                    remedy=f"write @dataclass above class {cls.__name__}",
                )

    @classmethod
    def check_names(cls, names: Iterable[str], remedy: str) -> None:
        """Refuse names that are none of the settings.

        Args:
            names: what is to be set.
            remedy: what to do, with `{}` where the nearest name goes.

        Raises:
            BadSettings: one of the names is not known.
        """
        from truestep.loop.settings.flags import ALIASES

        known = [field.name for field in fields(cls)]
        for name in names:
            if name not in known:
                near = [ALIASES[name]] if name in ALIASES else difflib.get_close_matches(name, known, n=1)
                raise BadSettings(
                    f'"{name}" is not a setting of a run',
                    expected=f"one of {', '.join(known)}",
                    remedy=remedy.format(near[0]) if near else "leave it out",
                )
