"""`Run`: support for a training loop that you own, one line at a time.

    run = Run(out="runs/lab", seed=42, max_epochs=10, accumulate=4, clip_norm=1.0)
    train = run.loader(dataset, batch_size=64, shuffle=True)
    model = run.model(Net())
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-3))
    for epoch in run.epochs():
        for x, y in run.train(train, model):
            with run.autocast():
                loss = criterion(model(x), y)
            run.step(loss)

The model stays your `nn.Module`, the optimizer your `torch.optim.Optimizer`.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat

import torch

from truestep.config import Options
from truestep.errors import BadSettings, RankDoesNotAnswer
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.declared import facts_of_settings
from truestep.loop.checkpoint.listing import find
from truestep.loop.checkpoint.run_folder import RunFolder
from truestep.loop.optim.cadence import Cadence
from truestep.loop.optim.precision import Precision
from truestep.loop.position.progress import RunProgress
from truestep.loop.process import provenance
from truestep.loop.process.device import pick
from truestep.loop.process.signals import Signals
from truestep.loop.process.terminal import say
from truestep.loop.ranks.heartbeat import REGULAR
from truestep.loop.ranks.launch import device_of, place
from truestep.loop.ranks.quiet import quiet
from truestep.loop.ranks.start import only_first, started
from truestep.loop.ranks.strategy import Strategy
from truestep.loop.rng.deterministic import deterministic
from truestep.loop.rng.seed import seed_everything
from truestep.loop.run.checkpointer import Checkpointer
from truestep.loop.run.evaluation import Evaluation
from truestep.loop.run.inspecting import Inspecting
from truestep.loop.run.logging import RunLog
from truestep.loop.run.loops import Loops
from truestep.loop.run.models import RunModels
from truestep.loop.run.observation_methods import ObservationMethods
from truestep.loop.run.rank_methods import RankMethods
from truestep.loop.run.registry import Parts, State
from truestep.loop.run.run_state import RunState
from truestep.loop.run.setup_methods import SetupMethods
from truestep.loop.run.stepper import Stepper
from truestep.loop.run.training_methods import TrainingMethods
from truestep.loop.settings.limits import Limits, seconds
from truestep.loop.settings.settings import Settings
from truestep.report import write
from truestep.supervision.session import Session, watching
from truestep.trackers.tracking import Ending


class Run(SetupMethods, TrainingMethods, ObservationMethods, RankMethods):
    """One training run.

    Args:
        settings: a `Settings`, or a dataclass that extends it.
        **changes: single settings by name, which override those.

    Raises:
        BadSettings: an invalid setting.
        UnknownPrecision: an unknown precision, or one that the device lacks.
        FolderHoldsRun: `out` or `mirror` holds the checkpoints of another run, or `resume` was not given.
        FolderInUse: another process trains into `out`.
        StorageUnavailable: `mirror` cannot be read or written.
        PackageMissing: fsspec or its package for the kind of storage is not installed.
        SeveralProcesses: the environment says that this is one of several processes, and not how to find the others.

    Example:
        >>> from torch import nn
        >>> run = Run(seed=1, max_epochs=2, device="cpu")
        >>> model = run.model(nn.Linear(2, 1))
        >>> optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        >>> loader = run.loader(torch.utils.data.TensorDataset(torch.randn(6, 2), torch.randn(6, 1)), batch_size=3)
        >>> for epoch in run.epochs():
        ...     for x, y in run.train(loader, model):
        ...         done = run.step(nn.functional.mse_loss(model(x), y))
        >>> run.global_step
        4
    """

    def __init__(self, settings: Settings | None = None, **changes: Any) -> None:
        self.settings = settings = (settings or Settings()).changed(**changes).sealed()
        here = place(settings.strategy)
        device = settings.device if here is None else device_of(settings.device, here.local_rank)
        self.precision = Precision(settings.precision, pick(device))
        self.device = self.precision.device
        self.strategy = strategy = started(settings, here, self.device)
        self.state = State()
        self._parts = Parts()
        self._parts.record.settings = provenance.plain(asdict(settings))
        self._closed = False
        self._session: Session | None = None
        with ExitStack() as stack:
            stack.callback(strategy.close)
            if strategy.rank:
                stack.enter_context(quiet())
                settings = settings.changed(progress=False, trackers=(), watch=False)
            stack.enter_context(self.precision)
            if settings.deterministic:
                stack.enter_context(deterministic())
            seed_everything(settings.seed)
            folder = only_first(strategy, lambda: _opened(settings, stack))
            resumed = _resumed(strategy, folder)
            if folder is not None:
                provenance.write(folder.path, asdict(settings), self.device, resumed if folder.continues else None)
            self._signals = signals = Signals(handled=settings.out is not None, warning=settings.on_sigusr1)
            stack.callback(signals.restore)
            stack.callback(self._parts.end_workers)
            self._connect(settings, folder, resumed, signals, stack)
            if settings.watch and not watching():
                self._session = Session(Options(), script=sys.argv[0])
                self._session.start()
            self._stack = stack.pop_all()
        atexit.register(self._at_exit)

    def _connect(
        self,
        settings: Settings,
        folder: RunFolder | None,
        resumed: Checkpoint | None,
        signals: Signals,
        stack: ExitStack,
    ) -> None:
        """Build the parts, each from those below it."""
        parts, device, strategy = self._parts, self.device, self.strategy
        path = None if folder is None else folder.path
        self._progress = progress = RunProgress(_limits(settings))
        self._log = log = RunLog(path, settings, self.precision, parts, progress, strategy)
        stack.callback(log.logs.close, "crashed")  # unless the run was closed before
        stack.callback(log.line.close)
        self._contents = contents = RunState(
            parts,
            self.state,
            log.logs,
            folder.checkpoints if folder else None,
            resumed,
            strategy,
            device,
            saves=settings.out is not None,
            init_from=settings.init_from,
            facts=facts_of_settings(settings, self.precision.name, device.type),
        )
        if contents.loops is not None:
            progress.load_state_dict(contents.loops)
        measure = (contents.loops or {}).get("measure")
        cadence = Cadence(parts.updates, parts.schedules, progress.limits, measure)
        self._stepper = stepper = Stepper(
            parts.updates, parts.models, progress, parts.averaging, cadence, self.precision, self.strategy, log.logs
        )
        self._checkpointer = Checkpointer(progress, stepper, parts, self.state, contents, signals, log.line, strategy)
        stack.callback(self._checkpointer.starts.end_all)
        self._loops = Loops(progress, stepper, self._checkpointer, log, parts, device, strategy)
        self._models = RunModels(parts, contents, settings, device, strategy)
        self._evaluation = Evaluation(device, self.precision, stepper, parts.means, strategy)
        self._inspecting = Inspecting(parts.models, parts.updates, self._loops, progress, path)

    # --- checkpoints and the end ---

    def save(self, metric: SupportsFloat | None = None, *, mode: Literal["min", "max"] = "min") -> None:
        """Request a checkpoint: written at the end of the current body, or immediately outside of loops.

        Args:
            metric: determines the best checkpoint: a number, a tensor of one element, or a mean.
            mode: "min" if the smallest metric is the best, "max" if the largest is.

        Raises:
            BadSettings: the run has no folder, or `mode` is invalid.
            OpenWindow: gradients of a loop that was left wait for an update.
        """
        if self.settings.out is None:
            raise BadSettings(
                "the run has no folder to save into", expected="expected out=", remedy='pass out="runs/name" to Run'
            )
        if mode not in ("min", "max"):
            raise BadSettings(
                f'mode is "{mode}"', expected='expected "min" or "max"', remedy='pass mode="min" for a loss'
            )
        if isinstance(metric, torch.Tensor):
            metric = metric.detach()
        self._checkpointer.request(None if metric is None else float(metric), mode)

    def close(self) -> None:
        """End the run: write pending data, release the folder and the settings of torch. Also called at exit."""
        if not self._closed:
            self._checkpointer.end()
            self._release("interrupted" if self._signals.received else "finished")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            reason = self._break_off(error)
            if reason is not None:
                raise reason from error

    def _at_exit(self) -> None:
        """End a run that is still open; an exception saves nothing, since the body of its loop did not end."""
        error = getattr(sys, "last_value", None)
        if error is None:
            self.close()
        else:
            reason = self._break_off(error)
            if reason is not None:
                say(f"truestep: {reason}")

    def _break_off(self, error: BaseException) -> RankDoesNotAnswer | None:
        """End after an exception, with its diagnosis in the report; return the reason if it lies in another process."""
        if self._closed:
            return None
        if self._session is not None and isinstance(error, Exception):
            self._session.examine(error)
        reason = None
        try:
            self.strategy.explain(error)
        except RankDoesNotAnswer as found:
            reason = found
        regular = isinstance(error, SystemExit) and error.code in (None, 0)  # as at the end of max_time
        stopped = self._signals.received or isinstance(error, KeyboardInterrupt)
        self.strategy.ended(REGULAR if regular or stopped else f"with {type(error).__name__}")
        self._release("finished" if regular else "interrupted" if stopped else "crashed")
        return reason

    def _release(self, how: Ending) -> None:
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._log.line.close()
        try:
            self._log.logs.flush()
        finally:
            try:
                self._contents.wait()
            finally:
                self._log.logs.close(how)
                self._stack.close()
                if self._session is not None:
                    others = tuple(rank for rank in range(self.world_size) if rank != self.rank)
                    write(replace(self._session.stop(how), missing_ranks=others), Options())


def _opened(settings: Settings, stack: ExitStack) -> RunFolder | None:
    """Open the folder of a run; None if it has none."""
    if settings.out is None:
        return None
    folder = RunFolder.open(Path(settings.out), settings)
    stack.callback(folder.close)
    return folder


def _resumed(strategy: Strategy, folder: RunFolder | None) -> Checkpoint | None:
    """Return the checkpoint that all ranks start from; it must be readable on every machine."""
    own = None if folder is None else folder.resumed
    path = strategy.of_first(None if own is None else str(own.path.resolve()))
    return own if own is not None or path is None else find(path)


def _limits(settings: Settings) -> Limits:
    return Limits(
        settings.max_epochs,
        settings.max_steps,
        settings.save_every_n_steps,
        settings.save_every_n_minutes,
        None if settings.max_time is None else seconds(settings.max_time, "max_time"),
    )
