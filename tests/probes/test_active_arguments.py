"""Arguments without influence: which of them are named, and where their influence ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from truestep.events import ArgumentsCompared
from truestep.supervision import Session


class Part(nn.Module):
    def forward(self, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        return x * 2


class Network(nn.Module):
    def __init__(self, use: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.use, self.part, self.head = use, Part(), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        return self.head(self.use(self, x, beside))  # type: ignore[no-any-return]


def compared(use: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor], beside: torch.Tensor) -> ArgumentsCompared:
    """Train a model on two arguments, and return the last comparison."""
    torch.manual_seed(0)
    random.seed(0)
    events: list[Any] = []
    model = Network(use)
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            model(torch.randn(8, 3), beside).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, ArgumentsCompared)][-1]


NUMBERS = torch.arange(24.0).reshape(8, 3) / 24


def test_an_argument_with_influence_is_alive() -> None:
    event = compared(lambda model, x, beside: x + beside, NUMBERS)
    assert (event.alive, event.dead) == (("x", "beside"), ())


def test_the_influence_ends_at_the_operation_that_loses_it() -> None:
    def rounded(model: Any, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        whole = beside.long()
        return x + whole

    event = compared(rounded, NUMBERS)
    assert event.dead == ("beside",)
    assert event.ends is not None
    assert event.ends.line == rounded.__code__.co_firstlineno + 1


def test_the_influence_ends_in_the_part_that_drops_the_argument() -> None:
    event = compared(lambda model, x, beside: model.part(x, beside), NUMBERS)
    assert event.ends is not None
    assert event.ends.line == Part.forward.__code__.co_firstlineno


def test_an_argument_that_is_used_at_random_is_alive() -> None:
    event = compared(lambda model, x, beside: x + beside if random.random() < 0.4 else x, NUMBERS)
    assert event.dead == ()


def test_causal_masks_and_constants_are_not_judged() -> None:
    for beside in (torch.ones(3, 3).triu(), torch.full((8, 3), 2.0)):
        event = compared(lambda model, x, beside: x + 0 * beside.sum(), beside)
        assert (event.alive, event.dead) == (("x",), ())
