"""The methods of `Run` before its loops: they add models, optimizers, schedules, loaders and other objects to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import torch
from torch import nn
from torch.utils.data import DataLoader

from truestep.errors import BadLoader
from truestep.loop.checkpoint.declared import facts_of_optimizer, facts_of_schedule
from truestep.loop.loading.given import GivenLoader
from truestep.loop.loading.loader import Loader, check_options
from truestep.loop.log.metric import metric_of
from truestep.loop.optim.schedulers import planned
from truestep.loop.rng.stateful_generators import stateful

if TYPE_CHECKING:
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.models import Model, RunModels
    from truestep.loop.run.registry import Parts
    from truestep.loop.run.run_state import RunState
    from truestep.loop.run.stepper import Stepper
    from truestep.loop.settings.settings import Settings
    from truestep.model.blocks import Kinds
    from truestep.model.ema import EMA
    from truestep.model.swa import SWA

AnyOptimizer = TypeVar("AnyOptimizer", bound=torch.optim.Optimizer)
AnyScheduler = TypeVar("AnyScheduler")
Part = TypeVar("Part")


class SetupMethods:
    """Models, optimizers, schedules, loaders and registered objects."""

    settings: Settings
    device: torch.device
    strategy: Strategy
    _parts: Parts
    _contents: RunState
    _progress: RunProgress
    _stepper: Stepper
    _models: RunModels

    def model(
        self,
        model: Model,
        *,
        compile: bool | str | Mapping[str, Any] = False,
        recompute: Kinds | None = None,
        shard: Kinds | None = None,
        name: str | None = None,
    ) -> Model:
        """Move a model to the device, and add it to the checkpoints; a resumed run loads its weights here.

        An error of torch that passes through `run.autocast()`, `run.evaluate()` or `run.predict()` has a note that
        names the two tensors with different devices, types or shapes, if they are certain.

        Args:
            model: any `nn.Module`; its class does not change.
            compile: True to compile it in place by torch.compile at its first call; or the name of a mode
                ("reduce-overhead", "max-autotune"), or torch.compile's options by name. Keys stay plain.
            recompute: types of blocks that only store their inputs and recompute the rest in the backward pass: less
                memory, more time, the same gradients.
            shard: types of blocks that `strategy="fsdp"` gathers one at a time; None for the repeated blocks, the
                children of containers with several of one class. Other strategies ignore it.
            name: its name in the checkpoint; "model", "model_2", ... by default.

        Raises:
            BadSettings: an unknown mode or option of torch.compile.
            BadPart: it has no block of these types, no values (on the meta device), already belongs to the run, or
                cannot be divided over ranks.
        """
        return self._models.add(model, compile, recompute, shard, name)

    def ema(self, model: nn.Module, decay: float = 0.999, *, warmup: bool = False, name: str | None = None) -> EMA:
        """Keep an exponential moving average of the weights of a model, as part of the checkpoints.

        It is updated after each applied update of the optimizer of the model: not in the middle of a window, and not
        after a step that fp16 skipped. `ema.model` is a separate model, so evaluation is
        `with run.evaluate(ema.model)`, and the checkpoint holds both.

        Args:
            model: the result of `run.model()`, or a part of it.
            decay: fraction of the average that an update keeps, in [0, 1).
            warmup: True if the first updates keep less, `min(decay, (1 + updates) / (10 + updates))`.
            name: its name in the checkpoint; "ema", "ema_2", ... by default.

        Raises:
            BadSettings: a decay outside of its range.
            BadPart: the model cannot be copied, is on another device, or has a dtype too coarse for the decay.
        """
        return self._models.ema(model, decay, warmup=warmup, name=name)

    def swa(
        self, model: nn.Module, start: int, *, every: Literal["epoch", "step"] = "epoch", name: str | None = None
    ) -> SWA:
        """Keep an equal average of the weights of a model, from an epoch or step on, as part of the checkpoints.

        Until it starts, `swa.model` has the weights of the last epoch or step, and `swa.updates` is 0. After training,
        `swa.update_bn(run.batches(loader))` recomputes the statistics of BatchNorm.

        Args:
            model: the result of `run.model()`, or a part of it.
            start: the first epoch to average at its end, or the first applied update, counted from 0.
            every: "epoch" at the end of each epoch, "step" after each update that was applied.
            name: its name in the checkpoint; "swa", "swa_2", ... by default.

        Raises:
            BadSettings: `start` is not an integer of at least 0, or is after the end of the run, or `every` is invalid.
            BadPart: the model cannot be copied, or is on another device.
        """
        return self._models.swa(model, start, every=every, name=name)

    def effective_batch_size(self, loader: Loader) -> int:
        """Return the samples of one update if each batch is one micro-step: batch size times `accumulate`."""
        return loader.batch_size * self.settings.accumulate * self.strategy.world_size

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
            optimizer: any optimizer with the interface of `torch.optim.Optimizer`.
            name: its name in the checkpoint; "optimizer", "optimizer_2", ... by default.
            accumulate: micro-steps in its window, if not those of the run.
            clip_norm: largest norm of its gradients alone, if not that of the run.

        Raises:
            BadPart: it belongs to the run already, or with `strategy="fsdp"` was built before `run.model()`.
        """
        self.strategy.check_optimizer(optimizer)
        settings = self.settings
        clips_alone = clip_norm is not None
        accumulate = accumulate if accumulate is not None else settings.accumulate
        clip_norm = clip_norm if clip_norm is not None else settings.clip_norm
        name = self._parts.add(dict(self._parts.updates), "optimizer", name, optimizer)
        self._parts.declared[name, "optimizer"] = facts_of_optimizer(optimizer, accumulate, clip_norm)
        self._stepper.add(name, optimizer, accumulate, clip_norm, clips_alone=clips_alone)
        return optimizer

    def scheduler(
        self,
        scheduler: AnyScheduler,
        *,
        every: Literal["step", "epoch"] = "step",
        metric: str = "",
        name: str | None = None,
    ) -> AnyScheduler:
        """Add a schedule, which the run steps.

        Args:
            scheduler: any scheduler of torch, or one of `truestep.schedules`.
            every: "step" after each applied update of its optimizer, "epoch" at the end of each epoch.
            metric: for ReduceLROnPlateau, name of a value that is passed to `run.log()` once per epoch.
            name: its name in the checkpoint; "schedule", "schedule_2", ... by default.

        Raises:
            BadSchedule: `every` is invalid, or ReduceLROnPlateau has no metric.
        """
        schedule = planned(name or "", scheduler, every, metric)
        updates = self._stepper.index.of(schedule.scheduler.optimizer)
        schedule.name = self._parts.add(self._parts.schedules, "schedule", name, schedule)
        updates.schedules.append(schedule)
        self._parts.declared[schedule.name, "schedule"] = facts_of_schedule(scheduler, schedule.every, updates.name)
        progress = self._progress
        passed = progress.global_step if schedule.every == "step" else progress.epoch
        schedule.start = self._contents.start_of(schedule.name, passed)
        self._stepper.cadence.add(schedule, updates)
        return scheduler

    @overload
    def loader(self, dataset: DataLoader[Any], *, name: str | None = None) -> GivenLoader: ...

    @overload
    def loader(self, dataset: Any, batch_size: int, *, name: str | None = None, **options: Any) -> Loader: ...

    def loader(
        self, dataset: Any, batch_size: int | None = None, *, name: str | None = None, **options: Any
    ) -> Loader | GivenLoader:
        """Create a loader of a data set, with order and random samples determined by the seed of the run.

        Args:
            dataset: one of `truestep.data`, or any data set of torch; or a DataLoader: on resume, its finished batches
                are read again and dropped.
            batch_size: samples in a batch; must be left out for a DataLoader.
            name: determines its order, and is its name in the checkpoint; "loader", "loader_2", ... by default.
            **options: arguments of `Loader`: shuffle, drop_last, num_workers, collate_fn, transform, ...
        """
        name = self._parts.loader_name(name, in_epoch=self._progress.position.in_epoch)
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
        self._parts.record.meet(dataset)
        return loader

    def _given_loader(
        self, loader: DataLoader[Any], name: str, batch_size: int | None, options: dict[str, Any]
    ) -> GivenLoader:
        if batch_size is not None or options:
            given = ", ".join([*(["batch_size"] if batch_size is not None else []), *options])
            raise BadLoader(
                f"a DataLoader was given to run.loader() together with {given}",
                expected="expected the DataLoader alone, since it already yields batches",
                remedy="pass its data set instead: run.loader(dataset, batch_size=...)",
            )
        made = GivenLoader(loader, name)
        self._parts.add(self._parts.loaders, "loader", name, made)
        self._parts.record.meet(loader.dataset)
        return made

    def keep_preprocessing(self, values: Any) -> None:
        """Save the preprocessing of the inputs with each checkpoint, so that it is never written a second time.

        Without this call, it is that of the first data set of `truestep.data` that is passed to `run.loader()`.
        `truestep.Trained` and exports read it.

        Args:
            values: a data set of `truestep.data`, or a mapping of numbers, text, lists and dictionaries.

        Raises:
            BadPart: it cannot be written as JSON, or the data set has no preprocessing that can be described.
        """
        self._parts.record.give(values)

    def register(self, name: str, part: Part) -> Part:
        """Add an object with a state to the checkpoints; a resumed run loads its state here.

        Args:
            name: its name in the checkpoint.
            part: object with `state_dict` and `load_state_dict`, a generator of torch, numpy or python, or a metric of
                torchmetrics, which is moved to the device of the run.

        Raises:
            BadPart: it has no state that can be saved, or the name is taken.
        """
        self._parts.add(self._parts.registered, "part", name, metric_of(part, self.device) or stateful(part))
        self._contents.load_registered(name)
        return part

    def drop(self, part: Any) -> None:
        """Remove a part from the run: it is no longer stepped, averaged or saved. Schedules go with their optimizer.

        A run of several phases drops the optimizer of the first before it adds that of the second. A resumed run
        executes the same lines: inside an epoch, write `if epoch >= 5 and ...`, so that a later start does, too.

        Args:
            part: result of `run.optimizer()`, `run.scheduler()`, `run.ema()`, `run.swa()`, `run.model()` or
                `run.register()`.

        Raises:
            BadPart: it does not belong to the run.
            OpenWindow: gradients of the optimizer wait for an update.
        """
        self._parts.drop(part)
