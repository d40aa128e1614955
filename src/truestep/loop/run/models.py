"""What a run does with models: their place, and averages of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from truestep.errors import BadPart, BadSettings
from truestep.loop.optim.averaging import Followed
from truestep.loop.process.strategy import Strategy
from truestep.loop.run.registry import Parts
from truestep.model.compiling import compile_in_place, compile_options
from truestep.model.ema import EMA
from truestep.model.recompute import Kinds
from truestep.model.recompute import recompute as recompute_blocks
from truestep.model.swa import SWA

if TYPE_CHECKING:
    from truestep.loop.loading.loader import Loader
    from truestep.loop.run.run_state import Saving
    from truestep.loop.settings.settings import Settings

Model = TypeVar("Model", bound=nn.Module)


class Modelling:
    """The models of a run.

    Attributes:
        settings: of the run.
        device: where models are.
        strategy: how a step is spread over processes.
    """

    settings: Settings
    device: torch.device
    strategy: Strategy
    _parts: Parts
    _saving: Saving
    _stack: ExitStack

    def model(
        self,
        model: Model,
        *,
        compile: bool | str | Mapping[str, Any] = False,
        recompute: Kinds | None = None,
        name: str | None = None,
    ) -> Model:
        """Move a model to the device, and make it part of the checkpoints; a resumed run loads its weights here.

        An error of torch that passes through `run.autocast()`, `run.evaluate()` or `run.predict()` has a note that says
        which tensor was of another device, type or shape than what, where that is certain.

        Args:
            model: any `nn.Module`; it stays what it is.
            compile: True to compile it in place by torch.compile at its first call; or the name of a mode
                ("reduce-overhead", "max-autotune"), or torch.compile's options by name. Keys stay plain.
            recompute: types of blocks that keep their inputs only and compute the rest again in the backward pass: less
                memory, more time, the same gradients.
            name: its name in the checkpoint; "model", "model_2", ... where none is given.

        Raises:
            BadSettings: a mode or an option of torch.compile that there is not.
            BadPart: it has no block of these types, no values (on the meta device), or belongs to the run already.
        """
        _check_values(model)
        compile_options(compile)  # which may refuse, before the model belongs to the run
        if recompute:
            recompute_blocks(model, recompute)
        name = self._parts.add(self._parts.models, "model", name, model)
        compile_in_place(model, compile)  # at its first call, with what is done to it here
        self.strategy.prepare(model, self.device)
        self._saving.load_model(name, model)
        return model

    def ema(self, model: nn.Module, decay: float = 0.999, *, warmup: bool = False, name: str | None = None) -> EMA:
        """Keep an exponential moving average of a model's weights, which joins the checkpoints.

        It takes the weights in after each update of the model's optimizer that was applied: not in the middle of a
        window, and not where fp16 skipped. `ema.model` is a model of its own, so evaluation is
        `with run.evaluate(ema.model)`, and the checkpoint holds both.

        Args:
            model: what `run.model()` returned, or a part of it.
            decay: what an update keeps of the average, in [0, 1).
            warmup: whether the first updates keep less, `min(decay, (1 + updates) / (10 + updates))`.
            name: its name in the checkpoint; "ema", "ema_2", ... where none is given.

        Raises:
            BadSettings: a decay out of its range.
            BadPart: the model cannot be copied, is on another device, or is of a type too coarse for the decay.
        """
        self._check_place(model, "ema")
        followed = Followed(EMA(model, decay, warmup=warmup))
        self._keep("ema", name, followed)
        assert isinstance(followed.average, EMA)
        return followed.average

    def swa(
        self, model: nn.Module, start: int, *, every: Literal["epoch", "step"] = "epoch", name: str | None = None
    ) -> SWA:
        """Keep an equal average of a model's weights from some epoch or step on, which joins the checkpoints.

        Until it starts, `swa.model` has the weights of the last epoch or step, and `swa.updates` is 0. After training,
        `swa.update_bn(run.batches(loader))` computes the statistics of BatchNorm anew.

        Args:
            model: what `run.model()` returned, or a part of it.
            start: the first epoch whose end is averaged, or the first applied update, counted from 0.
            every: "epoch" at the end of each epoch, "step" after each update that was applied.
            name: its name in the checkpoint; "swa", "swa_2", ... where none is given.

        Raises:
            BadSettings: `start` is no whole number of at least 0, lies behind the run's end, or `every` is neither.
            BadPart: the model cannot be copied, or is on another device.
        """
        if every not in ("epoch", "step"):
            raise BadSettings(f'every is "{every}"', expected='"epoch" or "step"', remedy='pass every="epoch"')
        limit = self.settings.max_epochs if every == "epoch" else self.settings.max_steps
        whole = isinstance(start, int) and not isinstance(start, bool)
        if not whole or start < 0 or (limit is not None and start >= limit):
            raise BadSettings(
                f"start is {start!r}",
                expected=f"a whole number of at least 0{f' and below {limit}, the end of the run' if limit else ''}",
                remedy=f"pass the first {every} that is averaged",
            )
        self._check_place(model, "swa")
        followed = Followed(SWA(model), every, start)
        self._keep("swa", name, followed)
        assert isinstance(followed.average, SWA)
        return followed.average

    def effective_batch_size(self, loader: Loader) -> int:
        """Return the samples of one update where each batch is one micro-step: batch size times `accumulate`."""
        return loader.batch_size * self.settings.accumulate * self.strategy.world_size

    def _check_place(self, model: nn.Module, call: str) -> None:
        devices = {parameter.device.type for parameter in model.parameters()}
        if not devices or devices != {self.device.type}:
            raise BadPart(
                f"run.{call}() was given a model on {', '.join(sorted(devices))}"
                if devices
                else f"run.{call}() was given a model without parameters",
                expected=f"a model on the run's device, {self.device}",
                remedy=f"write model = run.model(model) before run.{call}(model)",
            )

    def _keep(self, kind: str, name: str | None, followed: Followed) -> None:
        shelf = self._parts.averaging.shelf
        if name is None:
            others = sum(other == kind or other.startswith(f"{kind}_") for other in shelf)
            name = self._parts.next_name(kind, others)
        self._parts.add(shelf, kind, name, followed)
        self._saving.load_average(name, followed)


def _check_values(model: object) -> None:
    """Refuse a model on the meta device, which has shapes and no values."""
    if not isinstance(model, nn.Module):
        return  # refused by its part of the run
    held = (*model.named_parameters(), *model.named_buffers())
    empty = [name for name, tensor in held if tensor.is_meta]
    if empty:
        raise BadPart(
            f"run.model() was given a {type(model).__name__} on the meta device",
            expected=f"tensors with values, got {len(empty)} without, such as {empty[0]!r}",
            remedy="write model.to_empty(device=run.device), and give its weights values, before run.model(model)",
        )
