"""Checks of `tape`: the predicted gradients are those of autograd."""

from __future__ import annotations

import itertools
import math
from types import ModuleType

import torch


def mean(answer: ModuleType) -> None:
    """The gradient of a mean, recorded or not"""
    for numbers, requires_grad, no_grad in itertools.product((3, 12), (False, True), (False, True)):
        x = torch.ones(numbers, requires_grad=requires_grad)
        with torch.set_grad_enabled(not no_grad):
            value = x.mean()
        true = None
        if value.requires_grad:
            value.backward()
            assert x.grad is not None
            true = x.grad[0].item()
        call = f"gradient_of_mean({numbers}, requires_grad={requires_grad}, no_grad={no_grad})"
        why = (
            "nothing was recorded, so the pass raises" if true is None else "each number has the same part in the mean"
        )
        _close(answer.gradient_of_mean(numbers, requires_grad, no_grad), true, call, why)


def square(answer: ModuleType) -> None:
    """Several passes without clearing"""
    for number, passes in ((3.0, 1), (3.0, 2), (-1.5, 4)):
        x = torch.tensor(number, requires_grad=True)
        for _ in range(passes):
            (x**2).backward()
        assert x.grad is not None
        call = f"gradient_of_square({number}, {passes})"
        _close(
            answer.gradient_of_square(number, passes),
            x.grad.item(),
            call,
            "a pass adds to the gradients of those before",
        )


def detached(answer: ModuleType) -> None:
    """A product with a detached factor"""
    for number in (3.0, -2.0):
        x = torch.tensor(number, requires_grad=True)
        (x * x.detach()).backward()
        assert x.grad is not None
        call = f"gradient_through_detach({number})"
        _close(answer.gradient_through_detach(number), x.grad.item(), call, "the detached factor is a constant")


def _close(got: float | None, true: float | None, call: str, reason: str) -> None:
    same = got is true if got is None or true is None else math.isclose(got, true, rel_tol=1e-6)
    assert same, f"{call} must be {true if true is None else round(true, 6)}, got {got}: {reason}"


CHECKS = (mean, square, detached)
