"""The reducer of DistributedDataParallel for the parameters of one optimizer.

It averages gradients over ranks while the backward pass still computes others. torch prepares it in the forward pass of
a wrapped model; here it is prepared right before the last backward pass of a window: the model needs no wrapper and no
other keys, forward passes can be made in any way, and the earlier micro-steps of a window are local.

A parameter that the loss of a rank does not reach would block the others. torch searches for these in each step, and
reduces the result. Here they are known after the pass, by their gradients, and zeros are averaged for them. Which ranks
have a gradient is averaged too, as the gradient of one more parameter: one that no rank reaches has none at the end.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from truestep.seams.ranks import add_gradients


class Reducer:
    """Averages gradients in a backward pass.

    Args:
        parameters: trainable parameters on one type of device, in the same order on all ranks.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        first = parameters[0]
        self._has = nn.Parameter(torch.zeros(len(parameters), dtype=first.dtype, device=first.device))
        """Its gradient is 1 for each parameter with a gradient, shape (number of parameters,)."""
        self._all = torch.ones_like(self._has)
        self._before: list[tuple[torch.Tensor, int] | None] = []
        """Gradient of each parameter before the pass, with its version; None without one."""
        # The first parameter is in the last bucket, which the other gradients do not wait for.
        self._ddp = DistributedDataParallel(nn.ParameterList([self._has, *parameters]), init_sync=False)

    def prepare(self) -> None:
        """Average the gradients in the next backward pass."""
        grads = [parameter.grad for parameter in self.parameters]
        self._before = [None if grad is None else (grad, grad._version) for grad in grads]
        self._has.grad = None
        self._ddp.reducer._rebuild_buckets()
        self._ddp.reducer.prepare_for_backward([])

    def finish(self) -> None:
        """Average zeros for the parameters that the backward pass did not reach, and wait for all averages."""
        before, self._before = self._before, []
        left = [
            parameter
            for parameter, earlier in zip(self.parameters, before, strict=True)
            if _is_same(parameter.grad, earlier)
        ]
        has = self._all
        if left:
            has = torch.tensor([p.grad is not None for p in self.parameters], dtype=has.dtype, device=has.device)
        add_gradients([self._has, *left], [has, *map(torch.zeros_like, left)])
        if not left:
            return
        assert self._has.grad is not None
        for parameter, ranks in zip(self.parameters, self._has.grad.tolist(), strict=True):
            if not ranks:
                parameter.grad = None


def _is_same(grad: torch.Tensor | None, earlier: tuple[torch.Tensor, int] | None) -> bool:
    """Return True if a backward pass has added nothing to a gradient."""
    if grad is None or earlier is None:
        return grad is None
    return grad is earlier[0] and grad._version == earlier[1]


def can_reduce(parameters: list[nn.Parameter]) -> bool:
    """Return True if torch's reducer takes these parameters: dense, and on one type of device."""
    plain = all(isinstance(parameter, nn.Parameter) for parameter in parameters)
    return bool(parameters) and plain and len({parameter.device.type for parameter in parameters}) == 1
