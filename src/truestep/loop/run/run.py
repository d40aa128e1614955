"""`Run`: what a training loop that you own needs, one line at a time.

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
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat, TypeVar, overload

import torch
from torch import nn
from torch.utils.data import DataLoader

from truestep.config import Options
from truestep.errors import BadLoader, BadSettings
from truestep.loop.checkpoint.declared import facts_of_optimizer, facts_of_schedule, facts_of_settings
from truestep.loop.checkpoint.run_folder import RunFolder
from truestep.loop.loading.given import GivenLoader
from truestep.loop.loading.loader import Loader, check_options
from truestep.loop.log.flops import peak_flops
from truestep.loop.log.metric import metric_of
from truestep.loop.log.progress_line import ProgressLine
from truestep.loop.log.throughput import Pace
from truestep.loop.optim.precision import Precision
from truestep.loop.optim.schedulers import planned
from truestep.loop.optim.updates import Updates
from truestep.loop.process import provenance
from truestep.loop.process.device import pick
from truestep.loop.process.signals import Signals
from truestep.loop.process.strategy import SingleProcess, check_one_process
from truestep.loop.rng.deterministic import deterministic
from truestep.loop.rng.seed import seed_everything
from truestep.loop.rng.stateful_generators import stateful
from truestep.loop.run.evaluation import Evaluation
from truestep.loop.run.inspecting import Looking
from truestep.loop.run.logging import open_logs
from truestep.loop.run.loops import Loops
from truestep.loop.run.models import Modelling
from truestep.loop.run.modes import train_mode
from truestep.loop.run.registry import Parts, State
from truestep.loop.run.run_state import Saving
from truestep.loop.run.step import Stepping
from truestep.loop.settings.limits import Limits, seconds
from truestep.loop.settings.settings import Settings
from truestep.report import write
from truestep.supervision.session import Session, watching
from truestep.trackers.tracking import Ending

AnyOptimizer = TypeVar("AnyOptimizer", bound=torch.optim.Optimizer)
AnyScheduler = TypeVar("AnyScheduler")
Part = TypeVar("Part")


class Run(Modelling, Stepping, Evaluation, Looking):
    """One training run.

    Args:
        settings: a `Settings`, or a dataclass that extends it.
        **changes: single settings, by name, over those.

    Raises:
        BadSettings: a setting that means nothing.
        UnknownPrecision: a precision that there is not, or not on this device.
        FolderHoldsRun: `out` holds the checkpoints of another run, and `resume` was not given.
        FolderInUse: another process trains into `out`.
        SeveralProcesses: this is one of several processes, as under torchrun. Rank 0 raises it; the others exit with 1.

    Example:
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
        self.precision = Precision(settings.precision, pick(settings.device))
        self.device = self.precision.device
        check_one_process()
        self.strategy = SingleProcess()
        self.state = State()
        self._parts = Parts()
        self._closed = False
        self._session: Session | None = None
        with ExitStack() as stack:
            stack.enter_context(self.precision)
            if settings.deterministic:
                stack.enter_context(deterministic())
            seed_everything(settings.seed)
            self._folder = folder = RunFolder.open(Path(settings.out), settings) if settings.out is not None else None
            if folder is not None:
                stack.callback(folder.close)
                provenance.write(folder.path, asdict(settings), self.device, folder.resumed if folder.goes_on else None)
            self._signals = signals = Signals(handled=folder is not None, warning=settings.on_sigusr1)
            stack.callback(signals.put_back)
            stack.callback(self._parts.end_workers)
            self._logs = open_logs(folder.path if folder else None, settings, self._measured)
            stack.callback(self._logs.close, "crashed")  # where nobody ended it as something else
            self._pace = Pace(self.device, peak_flops(self.device, self.precision.name))
            self._progress = ProgressLine(
                shown=settings.progress and self.strategy.rank == 0, pace=self._pace, last=lambda: self._logs.last
            )
            stack.callback(self._progress.close)
            self._saving = Saving(
                self._parts,
                self.state,
                self._logs,
                folder.checkpoints if folder else None,
                folder.resumed if folder else None,
                self.device,
                settings.init_from,
                facts_of_settings(settings, self.precision.name, self.device.type),
            )
            self._loops = Loops(
                self._parts,
                self.state,
                self._saving,
                self._logs,
                signals,
                Limits(
                    settings.max_epochs,
                    settings.max_steps,
                    settings.save_every_n_steps,
                    settings.save_every_n_minutes,
                    None if settings.max_time is None else seconds(settings.max_time, "max_time"),
                ),
                device=self.device,
                saves=folder is not None,
                close=self._close,
                pace=self._pace,
                progress=self._progress,
                introduce=self._introduce,
            )
            stack.callback(self._loops.starts.end_all)
            if settings.watch and not watching():
                self._session = Session(Options(), script=sys.argv[0])
                self._session.start()
            self._stack = stack.pop_all()
        atexit.register(self._at_exit)

    # --- what belongs to the run ---

    def optimizer(
        self,
        optimizer: AnyOptimizer,
        *,
        name: str | None = None,
        accumulate: int | None = None,
        clip_norm: float | None = None,
    ) -> AnyOptimizer:
        """Make an optimizer part of the run.

        Args:
            optimizer: any optimizer of torch or built like one.
            name: its name in the checkpoint; "optimizer", "optimizer_2", ... where none is given.
            accumulate: micro-steps in its window, where it differs from the run's.
            clip_norm: largest norm of its gradients alone, where it differs from the run's.
        """
        settings = self.settings
        clips_alone = clip_norm is not None
        accumulate = accumulate if accumulate is not None else settings.accumulate
        clip_norm = clip_norm if clip_norm is not None else settings.clip_norm
        name = self._parts.add(dict(self._parts.updates), "optimizer", name, optimizer)
        self._parts.declared[name, "optimizer"] = facts_of_optimizer(optimizer, accumulate, clip_norm)
        self._parts.add_updates(
            Updates(
                name,
                optimizer,
                accumulate=accumulate,
                clip_norm=clip_norm,
                scaler=self.precision.new_scaler(),
                clips_alone=clips_alone,
                count=self._loops.count,
                applied=self._parts.applied,
            )
        )
        return optimizer

    def scheduler(
        self,
        scheduler: AnyScheduler,
        *,
        every: Literal["step", "epoch"] = "step",
        metric: str = "",
        name: str | None = None,
    ) -> AnyScheduler:
        """Let the run step a schedule.

        Args:
            scheduler: any scheduler of torch, or one of `truestep.schedules`.
            every: "step" after each update of its optimizer that was applied, "epoch" at the end of each epoch.
            metric: for ReduceLROnPlateau, the name of the value that `run.log()` gets once per epoch.
            name: its name in the checkpoint; "schedule", "schedule_2", ... where none is given.

        Raises:
            BadSchedule: a cadence that there is not, or a plateau without metric.
        """
        schedule = planned(name or "", scheduler, every, metric)
        updates = self._parts.of(schedule.scheduler.optimizer)
        schedule.name = self._parts.add(self._parts.schedules, "schedule", name, schedule)
        updates.schedules.append(schedule)
        self._parts.declared[schedule.name, "schedule"] = facts_of_schedule(scheduler, schedule.every, updates.name)
        passed = self.global_step if schedule.every == "step" else self.epoch
        schedule.start = self._saving.start_of(schedule.name, passed)
        self._loops.cadence.add(schedule, updates)
        return scheduler

    @overload
    def loader(self, dataset: DataLoader[Any], *, name: str | None = None) -> GivenLoader: ...

    @overload
    def loader(self, dataset: Any, batch_size: int, *, name: str | None = None, **options: Any) -> Loader: ...

    def loader(
        self, dataset: Any, batch_size: int | None = None, *, name: str | None = None, **options: Any
    ) -> Loader | GivenLoader:
        """Make a loader over a data set, whose order and random samples follow from the run's seed.

        Args:
            dataset: one of `truestep.data`, or any data set of torch; or a DataLoader, whose batches are given as they
                come: on resume, its finished batches are read again and dropped.
            batch_size: samples in a batch; a DataLoader has its own.
            name: what its order is made from, and its name in the checkpoint; "loader", "loader_2", ...
            **options: what `Loader` takes: shuffle, drop_last, num_workers, collate_fn, transform, ...
        """
        name = self._parts.loader_name(name, in_epoch=self._loops.walks.in_epoch)
        if isinstance(dataset, DataLoader):
            return self._given_loader(dataset, name, batch_size, options)
        check_options(options)
        if batch_size is None:
            raise BadLoader(
                "a loader was made without batch_size",
                expected="expected the number of samples in a batch",
                remedy="write run.loader(dataset, batch_size=32)",
            )
        strategy = self.strategy
        loader = Loader(
            dataset,
            batch_size=batch_size,
            seed=self.settings.seed,
            device=self.device,
            name=name,
            rank=strategy.rank,
            world_size=strategy.world_size,
            **options,
        )
        self._parts.add(self._parts.loaders, "loader", name, loader)
        return loader

    def _given_loader(
        self, loader: DataLoader[Any], name: str, batch_size: int | None, options: dict[str, Any]
    ) -> GivenLoader:
        if batch_size is not None or options:
            given = ", ".join([*(["batch_size"] if batch_size is not None else []), *options])
            raise BadLoader(
                f"a DataLoader was given to run.loader() together with {given}",
                expected="expected the DataLoader alone, which gives whole batches already",
                remedy="pass its data set instead: run.loader(dataset, batch_size=...)",
            )
        made = GivenLoader(loader, name)
        self._parts.add(self._parts.loaders, "loader", name, made)
        return made

    def register(self, name: str, part: Part) -> Part:
        """Let anything with a state join the checkpoints; a resumed run loads it here.

        Args:
            name: its name in the checkpoint.
            part: what has `state_dict` and `load_state_dict`, a generator of torch, numpy or python, or a metric of
                torchmetrics, which is moved to the run's device.

        Raises:
            BadPart: it has no state that can be kept, or the name is taken.
        """
        self._parts.add(self._parts.registered, "part", name, metric_of(part, self.device) or stateful(part))
        self._saving.load_registered(name)
        return part

    def drop(self, part: Any) -> None:
        """Let a part leave the run: it is stepped, averaged and saved no more. An optimizer takes its schedules along.

        A run of several phases drops the optimizer of the first before it adds that of the second. A resumed run goes
        through the same lines: where they stand in an epoch, `if epoch >= 5 and ...` lets a later start do them too.

        Args:
            part: what `run.optimizer()`, `run.scheduler()`, `run.ema()`, `run.swa()`, `run.model()` or `run.register()`
                returned.

        Raises:
            BadPart: it does not belong to the run.
            OpenWindow: gradients of the optimizer wait for an update.
        """
        self._parts.drop(part)

    # --- loops ---

    @property
    def global_step(self) -> int:
        """Steps taken: closed windows. Windows of several optimizers that close in one body are one step."""
        return self._loops.global_step

    @property
    def epoch(self) -> int:
        """Epochs that have ended, which is the number of the one under way."""
        return self._loops.walks.epoch

    def epochs(self) -> Iterator[int]:
        """Give the numbers of the epochs, from where the run is to `max_epochs`, or until `max_steps` are taken.

        A resumed run enters the epoch that it was stopped in again: what its body does before the training loop is
        done again, with the random state that the epoch began with; loops that had ended give nothing.
        """
        return self._loops.epochs()

    def train(self, loader: Loader | GivenLoader | DataLoader[Any], *models: nn.Module) -> Iterator[Any]:
        """Give the batches of one pass on the run's device, from where the run is.

        A resumed pass begins with a later batch, and `enumerate` with 0: count in `run.state`, or by `run.global_step`.

        Args:
            loader: from `run.loader()`, or a DataLoader.
            *models: put in train mode, where their root is in eval mode.

        Raises:
            OpenWindow: gradients of the loop before wait for an update.
        """
        for model in models:
            train_mode(model)
        return self._loops.train(loader)

    def steps(self, count: int | None = None, *models: nn.Module) -> Iterator[int]:
        """Yield the number of each of `count` steps, or up to `max_steps`, from where the run is.

        For loops without a loader: reinforcement learning, physics, batches that the script draws. With accumulation,
        the body may hold all micro-steps of a step, or one of them: until the window has closed, the next body gets
        the same number. A body that steps nothing passes with a number; one that updates several times, too.

        Args:
            count: how many numbers; `max_steps` where None.
            *models: put in train mode, where their root is in eval mode.

        Raises:
            BadSettings: no count, and the run has no `max_steps`.
            OpenWindow: gradients of the loop before wait for an update.

        Example:
            >>> run = Run(accumulate=2, device="cpu", watch=False)
            >>> model = run.model(nn.Linear(1, 1))
            >>> optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
            >>> [(step, run.step(model(torch.ones(1)).sum())) for step in run.steps(2)]
            [(0, False), (0, True), (1, False), (1, True)]
        """
        for model in models:
            train_mode(model)
        return self._loops.steps(count)

    # --- what is kept ---

    def save(self, metric: SupportsFloat | None = None, *, mode: Literal["min", "max"] = "min") -> None:
        """Ask for a checkpoint: it is written when the body under way has ended, or at once outside of loops.

        Args:
            metric: what "best" is judged by: a number, a tensor of one element, or a mean.
            mode: whether the best metric is the smallest or the largest.

        Raises:
            BadSettings: the run has no folder, or `mode` is neither.
            OpenWindow: gradients of a loop that was left wait for an update.
        """
        if self._folder is None:
            raise BadSettings(
                "the run has no folder to save into", expected="out=", remedy='pass out="runs/name" to Run'
            )
        if mode not in ("min", "max"):
            raise BadSettings(f'mode is "{mode}"', expected='"min" or "max"', remedy='pass mode="min" for a loss')
        if isinstance(metric, torch.Tensor):
            metric = metric.detach()
        self._loops.ask(None if metric is None else float(metric), mode)

    def close(self) -> None:
        """End the run: write what waits, let go of the folder and of torch's settings. Happens at exit, too."""
        if not self._closed:
            self._loops.end()
            self._let_go("interrupted" if self._signals.received else "finished")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._break_off(error)

    def _at_exit(self) -> None:
        """End a run that nobody closed; after an exception nothing is saved, since the body of its loop did not end."""
        error = getattr(sys, "last_value", None)
        if error is None:
            self.close()
        else:
            self._break_off(error)

    def _break_off(self, error: BaseException) -> None:
        """Let go after an exception, of which the report says what can be told."""
        if self._session is not None and not self._closed and isinstance(error, Exception):
            self._session.examine(error)
        regular = isinstance(error, SystemExit) and error.code in (None, 0)  # as at the end of max_time
        stopped = self._signals.received or isinstance(error, KeyboardInterrupt)
        self._let_go("finished" if regular else "interrupted" if stopped else "crashed")

    def _let_go(self, how: Ending) -> None:
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._progress.close()
        try:
            self._logs.flush()
        finally:
            try:
                self._saving.wait()
            finally:
                self._logs.close(how)
                self._stack.close()
                if self._session is not None:
                    write(self._session.stop(how), Options())
