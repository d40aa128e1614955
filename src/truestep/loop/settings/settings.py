"""The dataclass `Settings`, and the checks of its values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from truestep.errors import BadSettings
from truestep.loop.checkpoint.remote.storage import is_url
from truestep.loop.settings.flags import read_settings
from truestep.loop.settings.limits import seconds
from truestep.loop.settings.names import check_fields, check_names
from truestep.loop.settings.sharding import check_sharding


def _watch() -> bool:
    return os.environ.get("TRUESTEP_WATCH", "1").lower() not in ("0", "false", "no", "off")


@dataclass(kw_only=True)
class Settings:
    """Settings of a run.

    A program adds settings in a dataclass that extends this one; each field is also a flag, see `from_flags`. Settings
    are frozen once the run exists: fields of `run.settings` cannot be set.

    Attributes:
        out: folder for checkpoints, logs and the settings of the run; None to write nothing.
        seed: seed for python, numpy, torch, the order of the data and every random sample.
        max_epochs: largest number of epochs of `run.epochs()`; None for no limit.
        max_steps: number of steps after which every loop ends; None for no limit.
        precision: "auto", "fp32", "bf16" or "fp16" (also "32", "bf16-mixed", "16-mixed").
        accumulate: micro-steps per optimizer step (gradient accumulation).
        clip_norm: largest norm of the gradients of one optimizer; None for no limit.
        device: "auto", "cpu", "cuda", "cuda:1", "mps". Under torchrun, "auto" and "cuda" are one GPU for each process.
        strategy: "auto" for all processes that torchrun started, else one, each with the whole model; "ddp" to refuse a
            start without torchrun; "fsdp" to divide parameters, gradients and optimizer states over the processes.
        param_dtype: "fp32" or "bf16", the type in which `strategy="fsdp"` gathers parameters and computes; parts,
            gradients and optimizer states stay fp32.
        reduce_dtype: "fp32" or "bf16", the type in which `strategy="fsdp"` averages gradients.
        cpu_offload: keep the parts of `strategy="fsdp"`, their gradients and the optimizer states on the CPU.
        sync_batchnorm: take the statistics of batch normalisation in train mode over the batches of all processes.
        rank_timeout: seconds that processes wait for one another; then the run ends with an error that names those that
            did not come.
        deterministic: use deterministic kernels only; some are slower, and operations without one raise an error.
        resume: "auto" to resume from the newest complete checkpoint in `out`, if there is one; the path of another run
            or checkpoint to start from its step, epoch and optimizer states (if restarted, the run resumes from its
            own checkpoints); None for a new run.
        init_from: run, checkpoint or weights file from which the models of a new run load their weights, and nothing
            else; ignored if the run resumes.
        mirror: URL of a remote storage to which finished checkpoints are copied in the background, such as
            "s3://bucket/run"; resume="auto" takes its newest checkpoint if `out` has none or an older one.
        keep_last: number of checkpoints to keep, besides the best one.
        save_every_n_steps: steps between checkpoints, besides those of `run.save()`.
        save_every_n_minutes: minutes between checkpoints; saved at the end of a step.
        max_time: time limit of this process, in seconds or as "days:hours:minutes:seconds" ("00:12:00:00"); the run is
            saved and ends. A process that resumes the run has the same limit again.
        on_sigusr1: action after the save that follows SIGUSR1, which Slurm sends ahead of a time limit: "end" (exit
            code 138), "requeue" (the same, after `scontrol requeue`) or "save" (go on).
        asynchronous: write checkpoints in the background, from a copy.
        log_every_n_steps: number of `run.log()` lines to buffer before they are read from the device and written.
        progress: show progress on stderr: a line at the bottom of a terminal, few lines elsewhere.
        trackers: trackers that receive a copy of the log, besides `metrics.jsonl`: "tensorboard", "wandb", "mlflow".
        alerts: monitor the loss, the gradient norm and the validation loss, and warn when something is wrong.
        watch: supervise this run as `truestep run` does, and report when it ends; on by default, unless the environment
            variable TRUESTEP_WATCH is 0.

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
    strategy: str = "auto"
    param_dtype: str = "fp32"
    reduce_dtype: str = "fp32"
    cpu_offload: bool = False
    sync_batchnorm: bool = False
    rank_timeout: float = 600.0
    deterministic: bool = False
    resume: str | Path | None = None
    init_from: str | Path | None = None
    mirror: str | None = None
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
        check_fields(type(self))
        for name in ("max_epochs", "max_steps", "save_every_n_steps", "accumulate", "keep_last", "log_every_n_steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise BadSettings(f"{name} must be a positive integer, got {value!r}", remedy=f"pass {name}=1 or more")
        number = isinstance(self.clip_norm, int | float) and not isinstance(self.clip_norm, bool)
        if self.clip_norm is not None and not (number and self.clip_norm > 0):
            raise BadSettings(
                f"clip_norm must be a positive number or None, got {self.clip_norm!r}",
                remedy="leave clip_norm out for no clipping",
            )
        if self.init_from is not None and self.resume not in (None, "auto"):
            raise BadSettings(
                "resume and init_from both set the start of the run",
                expected=f"expected one of them, got resume={str(self.resume)!r} and init_from={str(self.init_from)!r}",
                remedy='pass init_from= to load weights only, with resume="auto" for a job that is restarted',
            )
        if self.save_every_n_minutes is not None and not self.save_every_n_minutes > 0:
            raise BadSettings(
                f"save_every_n_minutes must be a positive number or None, got {self.save_every_n_minutes!r}",
                remedy="pass save_every_n_minutes=10",
            )
        number = isinstance(self.rank_timeout, int | float) and not isinstance(self.rank_timeout, bool)
        if not (number and 0 < self.rank_timeout < float("inf")):
            raise BadSettings(
                f"rank_timeout must be a positive number of seconds, got {self.rank_timeout!r}",
                remedy="leave rank_timeout out for ten minutes",
            )
        if self.max_time is not None:
            seconds(self.max_time, "max_time")
        if self.strategy not in ("auto", "ddp", "fsdp"):
            raise BadSettings(
                f'strategy must be "auto", "ddp" or "fsdp", got {self.strategy!r}',
                remedy="leave strategy out, and start the program with torchrun for several processes",
            )
        check_sharding(self)
        if self.on_sigusr1 not in ("end", "requeue", "save"):
            raise BadSettings(
                f'on_sigusr1 must be "end", "requeue" or "save", got {self.on_sigusr1!r}',
                remedy='pass on_sigusr1="end"',
            )
        if self.mirror is not None and not is_url(self.mirror):
            raise BadSettings(
                f"mirror must be a URL or None, got {self.mirror!r}",
                expected='expected a URL that fsspec knows, such as "s3://bucket/run"',
                remedy='write "file:///path/to/folder" for a folder',
            )
        needing = ("resume", "mirror", "save_every_n_steps", "save_every_n_minutes", "max_time")
        given = [name for name in needing if getattr(self, name) is not None]
        if self.out is None and given:
            raise BadSettings(
                f"{given[0]} needs a folder for checkpoints, and the run has no folder",
                expected="expected out=",
                remedy='pass out="runs/name"',
            )

    @classmethod
    def from_flags(cls, *, args: Sequence[str] | None = None, **defaults: Any) -> Self:
        """Return settings read from the command line: each field is a flag, and `--config FILE` reads a file.

        From lowest to highest priority: defaults of the class, `defaults`, the file (TOML, or the settings.json of a
        run), environment variables `TRUESTEP_<NAME>`, flags. Names from other trainers also work (`--max-grad-norm`).

        Args:
            args: the flags; None for those of the process.
            **defaults: values that replace the defaults of the class.

        Raises:
            BadSettings: a name in `defaults` is unknown, or the class is not a dataclass.
            PackageMissing: tyro, which reads the flags, is not installed.
            SystemExit: a flag, the file or a variable is invalid (exit code 2, with the reason on stderr), or `--help`
                was given.
        """
        return read_settings(cls, defaults, args)

    def changed(self, **changes: Any) -> Self:
        """Return a copy of these settings with some of them changed.

        Raises:
            BadSettings: a name is unknown.
        """
        check_names(type(self), changes, "write {}=")
        return replace(self, **changes)

    def sealed(self) -> Self:
        """Return a frozen copy, for `run.settings`."""
        copy = replace(self)
        object.__setattr__(copy, "_sealed", True)
        return copy

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_sealed", False):
            raise BadSettings(
                f"cannot change {name}: settings are frozen once the run exists",
                remedy=f"set {name} before Run(settings), or keep values that change in run.state",
            )
        super().__setattr__(name, value)
