"""Types and place of divided parameters, as arguments of `fully_shard`."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_BATCH_NORMS = nn.modules.batchnorm._BatchNorm


class Policies(NamedTuple):
    """How a model is divided.

    Attributes:
        param_dtype: "fp32" or "bf16", in which parameters are gathered and a model computes; its parts, their gradients
            and the states of optimizers stay fp32.
        reduce_dtype: "fp32" or "bf16", in which gradients are averaged.
        offload: True to keep the parts, their gradients and the states of optimizers on the CPU.
    """

    param_dtype: str = "fp32"
    reduce_dtype: str = "fp32"
    offload: bool = False

    @property
    def converts(self) -> bool:
        """Whether a model computes in another type than that of its parameters."""
        return self.param_dtype != "fp32"

    def units(self, model: nn.Module, units: list[str]) -> list[str]:
        """Return the names of the units of a model, inner ones first.

        Batch normalisation is a separate unit if a model computes in bf16: its statistics are buffers, which torch
        leaves in fp32, and it needs its weights in their type.

        Args:
            model: before it is sharded.
            units: names of its blocks.
        """
        if not self.converts:
            return units
        alone = [name for name, module in model.named_modules() if name and _is_alone(module) and name not in units]
        return [*alone, *units]

    def options(self, module: nn.Module, *, root: bool) -> dict[str, Any]:
        """Return the arguments of `fully_shard` for one unit.

        Args:
            module: the unit.
            root: True for the model itself; its results are fp32 in any case.
        """
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy

        made: dict[str, Any] = {}
        if self.offload:
            made["offload_policy"] = CPUOffloadPolicy(pin_memory=torch.cuda.is_available())
        reduce_dtype = _DTYPES[self.reduce_dtype]
        if self.converts and isinstance(module, _BATCH_NORMS) and not root:
            made["mp_policy"] = MixedPrecisionPolicy(reduce_dtype=reduce_dtype, cast_forward_inputs=False)
        elif self.converts or self.reduce_dtype != "fp32":
            made["mp_policy"] = MixedPrecisionPolicy(
                param_dtype=_DTYPES[self.param_dtype],
                reduce_dtype=reduce_dtype,
                output_dtype=torch.float32 if root else None,
            )
        return made


def _is_alone(module: nn.Module) -> bool:
    return isinstance(module, _BATCH_NORMS) and any(True for _ in module.parameters())
