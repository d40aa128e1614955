"""The reducer of DistributedDataParallel for the parameters of one optimizer.

It averages gradients over ranks while the backward pass still computes others. torch prepares it in the forward pass of
a wrapped model; here it is prepared right before the last backward pass of a window, with the loss: the model needs no
wrapper and no other keys, forward passes can be made in any way, and the earlier micro-steps of a window are local.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Reducer:
    """Averages gradients in a backward pass.

    Args:
        parameters: trainable parameters on one type of device, in the same order on all ranks.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        # Parameters that a loss does not reach are searched in every step, since no program declares them. Without any,
        # torch warns that the search was in vain: one that no loss reaches keeps it quiet.
        never = nn.Parameter(torch.zeros(1, dtype=parameters[0].dtype, device=parameters[0].device))
        self._ddp = DistributedDataParallel(
            nn.ParameterList([*parameters, never]), init_sync=False, find_unused_parameters=True
        )
        self._reducer: Any = self._ddp.reducer

    def prepare(self, loss: torch.Tensor) -> None:
        """Average the gradients in the next backward pass of a loss.

        Args:
            loss: parameters that it does not reach count as ready.
        """
        self._reducer._rebuild_buckets()
        self._reducer.prepare_for_backward([loss])


def can_reduce(parameters: list[Any]) -> bool:
    """Return True if torch's reducer takes these parameters: dense, and on one type of device."""
    plain = all(isinstance(parameter, nn.Parameter) for parameter in parameters)
    return bool(parameters) and plain and len({parameter.device.type for parameter in parameters}) == 1
