"""The models of a run, and averages of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from truestep.errors import BadPart, BadSettings
from truestep.loop.optim.averaging import Followed
from truestep.loop.ranks.strategy import Strategy
from truestep.loop.run.registry import Parts
from truestep.model.blocks import Kinds, blocks_of
from truestep.model.compiling import compile_in_place, compile_options
from truestep.model.ema import EMA
from truestep.model.recompute import recompute as recompute_blocks
from truestep.model.swa import SWA
from truestep.seams.wrappers import uncompiled

if TYPE_CHECKING:
    from truestep.loop.run.run_state import RunState
    from truestep.loop.settings.settings import Settings

Model = TypeVar("Model", bound=nn.Module)


class RunModels:
    """Adds models and averages to a run.

    Args:
        parts: of the run.
        contents: of the checkpoint that the run resumes from.
        settings: of the run.
        device: of the run.
        strategy: moves a model to the device.
    """

    def __init__(
        self, parts: Parts, contents: RunState, settings: Settings, device: torch.device, strategy: Strategy
    ) -> None:
        self._parts, self._contents, self._settings = parts, contents, settings
        self._device, self._strategy = device, strategy

    def add(
        self,
        model: Model,
        compile: bool | str | Mapping[str, Any],
        recompute: Kinds | None,
        shard: Kinds | None,
        name: str | None,
    ) -> Model:
        """Add a model; see `Run.model`."""
        _check_values(model)
        compile_options(compile)  # raises errors before the model belongs to the run
        if recompute:
            recompute_blocks(model, recompute)
        if shard is not None:
            blocks_of(model, shard, "shard")
        name = self._parts.add(self._parts.models, "model", name, model)
        if self._settings.sync_batchnorm:
            self._strategy.join_statistics(uncompiled(model))
        compile_in_place(model, compile)  # at the first call, with everything that is done to the model here
        self._strategy.prepare(model, self._device, shard)
        self._contents.load_model(name, model)
        return model

    def ema(self, model: nn.Module, decay: float, *, warmup: bool, name: str | None) -> EMA:
        """Add an exponential moving average; see `Run.ema`."""
        self._check_place(model, "ema")
        average = EMA(model, decay, warmup=warmup)
        self._keep("ema", name, Followed(average))
        return average

    def swa(self, model: nn.Module, start: int, *, every: Literal["epoch", "step"], name: str | None) -> SWA:
        """Add an equal average of weights; see `Run.swa`."""
        if every not in ("epoch", "step"):
            raise BadSettings(f'every must be "epoch" or "step", got "{every}"', remedy='pass every="epoch"')
        limit = self._settings.max_epochs if every == "epoch" else self._settings.max_steps
        whole = isinstance(start, int) and not isinstance(start, bool)
        if not whole or start < 0 or (limit is not None and start >= limit):
            raise BadSettings(
                f"start is {start!r}",
                expected="expected a whole number of at least 0"
                + (f" and below {limit}, the end of the run" if limit else ""),
                remedy=f"pass the first {every} that is averaged",
            )
        self._check_place(model, "swa")
        average = SWA(model)
        self._keep("swa", name, Followed(average, every, start))
        return average

    def _check_place(self, model: nn.Module, call: str) -> None:
        if self._strategy.shards and not any(model is one for one in self._parts.models.values()):
            raise BadPart(
                f"run.{call}() was given a {type(model).__name__} that is not a model of the run",
                expected='expected the result of run.model(): with strategy="fsdp", no part of it can be copied alone',
                remedy=f"write run.{call}(model), with the whole model",
            )
        devices = {parameter.device.type for parameter in model.parameters()}
        if not devices or devices != {"cpu" if self._settings.cpu_offload else self._device.type}:
            raise BadPart(
                f"run.{call}() was given a model on {', '.join(sorted(devices))}"
                if devices
                else f"run.{call}() was given a model without parameters",
                expected=f"expected a model on the run's device, {self._device}",
                remedy=f"write model = run.model(model) before run.{call}(model)",
            )

    def _keep(self, kind: str, name: str | None, followed: Followed) -> None:
        shelf = self._parts.averaging.shelf
        if name is None:
            others = sum(other == kind or other.startswith(f"{kind}_") for other in shelf)
            name = self._parts.next_name(kind, others)
        self._parts.add(shelf, kind, name, followed)
        self._contents.load_average(name, followed)


def _check_values(model: object) -> None:
    """Refuse a model on the meta device, which has shapes and no values."""
    if not isinstance(model, nn.Module):
        return  # refused by its part of the run
    held = (*model.named_parameters(), *model.named_buffers())
    empty = [name for name, tensor in held if tensor.is_meta]
    if empty:
        raise BadPart(
            f"run.model() was given a {type(model).__name__} on the meta device",
            expected=f"expected tensors with values, got {len(empty)} without, such as {empty[0]!r}",
            remedy="write model.to_empty(device=run.device), and give its weights values, before run.model(model)",
        )
