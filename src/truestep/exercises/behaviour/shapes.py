"""Checks of `shapes`: the predicted shapes are those of torch."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import nn


def linear(answer: ModuleType) -> None:
    """A linear layer"""
    for shape in ((32, 128, 512), (7,), (2, 3, 4, 5)):
        true = tuple(nn.Linear(shape[-1], 6)(torch.zeros(shape)).shape)
        _equal(answer.after_linear(shape, 6), true, f"after_linear({shape}, 6)", "it acts on the last dimension only")


def mean(answer: ModuleType) -> None:
    """A mean over a dimension"""
    for shape, dim in (((32, 128, 512), 1), ((2, 3), -1), ((2, 3, 4), -3)):
        true = tuple(torch.zeros(shape).mean(dim).shape)
        _equal(answer.after_mean(shape, dim), true, f"after_mean({shape}, {dim})", "the dimension disappears")


def attention(answer: ModuleType) -> None:
    """The weights of attention"""
    for batch, time, features, heads in ((32, 128, 512, 8), (2, 5, 6, 3), (1, 4, 4, 1)):
        layer = nn.MultiheadAttention(features, heads, batch_first=True)
        x = torch.zeros(batch, time, features)
        true = tuple(layer(x, x, x, average_attn_weights=False)[1].shape)
        call = f"attention_weights({(batch, time, features)}, {heads})"
        _equal(
            answer.attention_weights((batch, time, features), heads), true, call, "each position looks at each other"
        )


def broadcast(answer: ModuleType) -> None:
    """Broadcasting"""
    for one, other in (((32, 1), (32,)), ((4, 3), (4, 3)), ((5, 1, 3), (2, 1)), ((1,), (7, 2)), ((), (3,))):
        true = tuple(torch.broadcast_shapes(one, other))
        reason = "shapes are compared from the right, and a missing dimension counts as 1"
        _equal(answer.after_broadcast(one, other), true, f"after_broadcast({one}, {other})", reason)


def _equal(got: object, true: tuple[int, ...], call: str, reason: str) -> None:
    assert got == true, f"{call} must be {true}, got {got}: {reason}"


CHECKS = (linear, mean, attention, broadcast)
