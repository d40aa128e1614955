"""Values of weights that look random: those that torch's layers begin with, and others drawn from one distribution."""

from __future__ import annotations

import math
from typing import Any

from truestep.probes.context.values import has_values, stored
from truestep.seams.divided import part
from truestep.seams.fsdp import is_freed

_LEAST_RANDOM = 16
_MOST = 4000
_LEAST_DRAWN = 512
"""Least number of values whose distribution is tested."""
_SIDE = 512
"""Most rows and columns of the matrix for the largest singular value."""
_LEAST_SIDE = 8
_ROUNDS = 30
_SIGMAS = 4
_EDGE = 1.08
"""Largest singular value of a matrix of independent values, in units of the limit for large matrices."""


def is_initial(weight: Any) -> bool:
    """Return True if a weight has the spread of the random numbers that linear layers, convolutions or embeddings get.

    Training and other initialisations leave this range: the weights of linear layers and convolutions are uniform
    within one over the root of the number of inputs, those of recurrent layers of the size of the state, and those of
    embeddings have a variance of 1.
    """
    local = stored(part(weight))
    if local.dim() < 2 or local.numel() < _LEAST_RANDOM or not has_values(local) or is_freed(local):
        return False
    if not local.is_floating_point():
        return False
    some = local.detach().reshape(-1)[:_MOST].float()
    largest, square = float(some.abs().max()), float(some.square().mean())
    near, inputs = 4 / math.sqrt(len(some)), {local.numel() / local.shape[0]}
    if local.dim() == 2 and local.shape[0] != local.shape[1]:  # a square one with Xavier's values has that of a GRU
        inputs |= {local.shape[0] / gates for gates in (1, 3, 4)}
    bounds = [1 / math.sqrt(one) for one in inputs]
    uniform = any(largest <= bound * 1.001 and abs(3 * square / bound**2 - 1) < near for bound in bounds)
    return uniform or (local.dim() == 2 and abs(square - 1) < 1.5 * near and abs(float(some.mean())) < near)


def is_drawn(weight: Any) -> bool:
    """Return True if the values of a weight look drawn independently from one normal or uniform distribution.

    Trained weights have heavier tails, or a singular value above the limit of independent values, which is
    sqrt(rows) + sqrt(columns) standard deviations (Marchenko and Pastur, 1967). Rows of zeros, for padding, are left
    out.
    """
    local = stored(part(weight))
    if local.dim() < 2 or local.numel() < _LEAST_DRAWN or not has_values(local) or is_freed(local):
        return False
    if not local.is_floating_point():
        return False
    matrix = local.detach().reshape(local.shape[0], -1)[:_SIDE, :_SIDE].float()
    matrix = matrix[(matrix != 0).any(1)]
    if min(matrix.shape) < _LEAST_SIDE or matrix.numel() < _LEAST_DRAWN or not bool(matrix.isfinite().all()):
        return False
    count, spread = matrix.numel(), float(matrix.square().mean()) ** 0.5
    if abs(float(matrix.mean())) * count**0.5 > _SIGMAS * spread:
        return False
    tails, error = float((matrix / spread).pow(4).mean()), (24 / count) ** 0.5
    if abs(tails - 3) > _SIGMAS * error and abs(tails - 1.8) > _SIGMAS * error:
        return False
    limit = sum(math.sqrt(side) for side in matrix.shape) * spread
    return bool(_largest_singular_value(matrix) <= _EDGE * limit)


def _largest_singular_value(matrix: Any) -> float:
    """Return the largest singular value of a matrix, by iterations that draw no random numbers."""
    vector = matrix[matrix.square().sum(1).argmax()]
    for _ in range(_ROUNDS):
        vector = matrix.T @ (matrix @ (vector / vector.norm()))
    return math.sqrt(float(vector.norm()))
