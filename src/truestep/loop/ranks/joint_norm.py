"""Batch normalisation with the statistics of the batches of all ranks together.

torch's `SyncBatchNorm` computes on GPUs only, and counts a sample that a rank repeats because it has none left. The one
here computes on every device, and counts each sample once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import batch_norm

from truestep.errors import BadPart

if TYPE_CHECKING:
    from truestep.loop.ranks.data_parallel import DataParallel

distributed: Any = torch.distributed
_BatchNorm = nn.modules.batchnorm._BatchNorm
_KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Members:
    """The ranks of a run, which a copy of a module shares; without a strategy, the module is alone.

    Args:
        strategy: of the run.
        group: a process group on the CPU.
    """

    def __init__(self, strategy: DataParallel | None = None, group: Any = None) -> None:
        self.strategy, self.group = strategy, group

    def __deepcopy__(self, memo: dict[int, Any]) -> Members:
        return self

    def __reduce__(self) -> tuple[type[Members], tuple[()]]:
        return Members, ()


class SyncBatchNorm(nn.SyncBatchNorm):
    """Batch normalisation over the ranks of a run, in train mode; other passes are those of one rank.

    A pass without gradients has the statistics of one rank: not all ranks need to make it.
    """

    ranks: Members

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return normalised values of the shape of `input`, (samples, channels, ...)."""
        strategy = self.ranks.strategy
        if strategy is None or not self.training or not torch.is_grad_enabled():
            return _BatchNorm.forward(self, input)
        self._check_input_dim(input)
        if strategy.weight:
            return self._joint(input)
        joint = self._joint(input[:0])  # the repeated samples of this rank are not counted
        mean, variance = self.running_mean, self.running_var
        if mean is not None and variance is not None:  # copies: a later pass changes the statistics in place
            mean, variance = mean.clone(), variance.clone()
        own = batch_norm(input, mean, variance, self.weight, self.bias, training=mean is None, eps=self.eps)
        return torch.cat([joint, own])

    def _joint(self, input: torch.Tensor) -> torch.Tensor:
        if input.device.type != "cpu":
            return super().forward(input)
        result: torch.Tensor
        result, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps, self.ranks.group)  # type: ignore[no-untyped-call]
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
            share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum  # type: ignore[arg-type]
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
            self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var.dtype), share)
        return result


class _Normalise(torch.autograd.Function):
    """Normalise the values of each channel by the mean and variance over all ranks."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: Any, bias: Any, eps: float, group: Any) -> Any:
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        dims, shape = [0, *range(2, input.dim())], [1, -1, *[1] * (input.dim() - 2)]
        own = input.numel() // input.shape[1]
        mean = wide.sum(dims) / max(own, 1)
        spread = (wide - mean.view(shape)).square().sum(dims)
        mine = torch.cat([mean, spread, mean.new_tensor([own])])
        held = [torch.empty_like(mine) for _ in range(group.size())]
        distributed.all_gather(held, mine, group=group)
        means, spreads, counts = torch.split(torch.stack(held), [len(mean), len(mean), 1], dim=1)
        count = counts.sum()
        if not torch.compiler.is_compiling() and count < 2:
            raise ValueError(f"Expected more than 1 value per channel over all ranks, got input size {input.shape}")
        mean = (means * counts).sum(0) / count
        variance = (spreads + counts * (means - mean).square()).sum(0) / count
        scale = (variance + eps).rsqrt()
        result = (wide - mean.view(shape)) * scale.view(shape)
        if weight is not None:
            result = result * weight.view(shape) + bias.view(shape)
        ctx.save_for_backward(input, weight, mean, scale)
        ctx.dims, ctx.shape, ctx.count, ctx.group = dims, shape, count, group
        ctx.mark_non_differentiable(mean, variance, count)
        return result.to(input.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *of_statistics: Any) -> Any:
        input, weight, mean, scale = ctx.saved_tensors
        dims, shape = ctx.dims, ctx.shape
        wide = gradient.to(mean.dtype)
        normalised = (input.to(mean.dtype) - mean.view(shape)) * scale.view(shape)
        of_bias, of_weight = wide.sum(dims), (wide * normalised).sum(dims)
        sums = torch.cat([of_bias, of_weight])
        distributed.all_reduce(sums, group=ctx.group)
        shift, tilt = (sums / ctx.count).chunk(2)
        factor = scale if weight is None else scale * weight
        of_input = (wide - shift.view(shape) - normalised * tilt.view(shape)) * factor.view(shape)
        if weight is None:
            return of_input.to(input.dtype), None, None, None, None
        return of_input.to(input.dtype), of_weight.to(weight.dtype), of_bias.to(weight.dtype), None, None


def join_statistics(model: nn.Module, members: Members) -> None:
    """Make the layers of batch normalisation compute their statistics over all ranks; keys and objects stay the same.

    Args:
        model: any module.
        members: the ranks of the run.

    Raises:
        BadPart: a layer of another class derived from torch's, or without a shape yet.
    """
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, _BatchNorm)]
    for name, module in found:
        if type(module) not in _KINDS:
            raise BadPart(
                f"{name or 'the model'} is a {type(module).__name__}, whose statistics cannot be joined",
                expected="expected " + ", ".join(kind.__name__ for kind in _KINDS),
                remedy="replace it by one of them before run.model(), or leave sync_batchnorm out",
            )
    for _, module in found:
        vars(module).setdefault("process_group", None)
        module.__class__ = SyncBatchNorm
        module.ranks = members  # type: ignore[assignment]
