"""Layers that run in two places of a module, while another layer of their kind runs in none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from truestep.events import TwinIdle
from truestep.testing import capture_events


class Block(nn.Module):
    def __init__(self, use: Callable[[Block, Tensor], Tensor]) -> None:
        super().__init__()
        self.one, self.two, self.wide = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 8)
        self.use = use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self, x)


def twice(block: Block, x: Tensor) -> Tensor:
    x = block.one(x).relu()
    return block.one(x)


def each(block: Block, x: Tensor) -> Tensor:
    x = block.one(x).relu()
    return block.two(x)


def again(block: Block, x: Tensor) -> Tensor:
    for _ in range(2):
        x = block.one(x).relu()
    return x


def once(block: Block, x: Tensor) -> Tensor:
    return block.one(x)


def in_one_line(block: Block, x: Tensor) -> Tensor:
    return block.one(x) + block.one(x).exp()


def seen(model: nn.Module) -> list[TwinIdle]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            model(torch.randn(8, 4)).sum().backward()
            optimizer.step()
    return [event for event in events if isinstance(event, TwinIdle)]


@pytest.mark.parametrize("use", [twice, in_one_line])
def test_a_layer_that_runs_in_two_places_is_named_with_its_idle_twin(use: Callable[[Block, Tensor], Tensor]) -> None:
    (event,) = seen(Block(use))
    assert (event.name, event.twin, len(event.parameters)) == ("two", "one", 2)
    assert None not in (event.first, event.site)
    assert event.first != event.site


@pytest.mark.parametrize("use", [each, again, once])
def test_layers_in_use_and_loops_are_quiet(use: Callable[[Block, Tensor], Tensor]) -> None:
    assert seen(Block(use)) == []


def test_each_block_of_a_model_counts_its_own_calls() -> None:
    events = seen(nn.Sequential(Block(each), Block(twice), Block(each)))
    assert [(event.name, event.twin) for event in events] == [("1.two", "1.one")]
    block = Block(once)
    assert seen(nn.Sequential(block, block)) == []
