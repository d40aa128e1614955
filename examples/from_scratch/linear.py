"""A linear layer."""

import math

import torch
from torch import nn


class Linear(nn.Module):
    """Multiply by a matrix and add a bias: y = x W' + b.

    An `nn.Parameter` that is assigned in `__init__` is registered: `parameters()`, `state_dict()` and `to()` find it. A
    plain tensor, or a list of parameters, they do not.

    Weights begin uniform in +-1/sqrt(in_features), so that outputs do not grow with the width of the layer.

    Args:
        in_features: size of the last dimension of x, (..., in_features).
        out_features: size of the last dimension of y, (..., out_features).

    Source: LeCun et al., Efficient BackProp (1998), 4.6; the range is that of `torch.nn.Linear`.

    >>> Linear(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features, out_features):
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-bound, bound))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def linear_backward(x, weight, grad_output):
    """Return the gradients of input, weight and bias, for a batch x of (batch, in_features).

    dL/dx = dL/dy W        dL/dW = (dL/dy)' x        dL/db = sum of dL/dy over the batch
    """
    return grad_output @ weight, grad_output.T @ x, grad_output.sum(dim=0)
