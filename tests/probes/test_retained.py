"""Graphs that backward passes retain: which of them are used again, and which go back through all steps before."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from truestep.events import Event, GraphsChained, GraphsRetained
from truestep.testing import capture_events

X = torch.randn(8, 4)


def retained(after: Callable[[torch.Tensor, torch.Tensor], object], *, steps: int = 40, **flags: bool) -> list[Event]:
    with capture_events() as events:
        trunk, head = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 2)
        optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], 0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            features = trunk(X)
            loss = head(features).pow(2).mean()
            loss.backward(**flags)
            after(loss, features)
            optimizer.step()
    return [event for event in events if isinstance(event, GraphsRetained | GraphsChained)]


def nothing(loss: torch.Tensor, features: torch.Tensor) -> None:
    pass


def test_graphs_that_no_pass_uses_are_emitted_once() -> None:
    (event,) = retained(nothing, retain_graph=True)
    assert isinstance(event, GraphsRetained)
    assert (event.followed, event.used, event.outlived) == (24, 0, 24)
    assert event.nodes >= 5
    assert event.kept_bytes > 8 * 8 * 4


@pytest.mark.parametrize("flags", [{}, {"retain_graph": False}, {"retain_graph": True, "create_graph": True}])
@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_nothing_is_emitted_for_graphs_that_are_not_only_retained(flags: dict[str, bool]) -> None:
    assert retained(nothing, **flags) == []


@pytest.mark.parametrize(
    "after",
    [
        lambda loss, features: loss.backward(),
        lambda loss, features: features.pow(2).mean().backward(),
        lambda loss, features: torch.autograd.grad(loss, features),
    ],
    ids=["whole", "part", "grad"],
)
def test_a_second_pass_through_the_graph_or_a_part_of_it_is_seen(after: Callable[..., object]) -> None:
    told = retained(after, retain_graph=True)
    assert all(isinstance(event, GraphsRetained) and event.used for event in told)


def test_a_use_that_comes_later_is_emitted_at_a_sampled_step() -> None:
    steps = 0

    def late(loss: torch.Tensor, features: torch.Tensor) -> None:
        nonlocal steps
        steps += 1
        if steps > 60:
            features.mean().backward()

    first, second = retained(late, steps=130, retain_graph=True)
    assert isinstance(first, GraphsRetained)
    assert isinstance(second, GraphsRetained)
    assert (first.used, second.used) == (0, 1)


def test_a_pass_that_is_retained_for_the_trunk_of_another_counts_as_used() -> None:
    with capture_events() as events:
        trunk, heads = nn.Linear(4, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
        optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], 0.01)
        for _ in range(40):
            optimizer.zero_grad()
            features = trunk(X).tanh()
            first, second, third = (head(features).mean() for head in heads)
            first.backward(retain_graph=True)
            second.backward(retain_graph=True)
            third.backward()
            optimizer.step()
    assert all(event.used for event in events if isinstance(event, GraphsRetained))


@pytest.mark.parametrize("window", [1, 8, 1000])
def test_a_state_that_is_carried_on_makes_a_chain(window: int) -> None:
    with capture_events() as events:
        cell, hidden = nn.RNNCell(4, 4), torch.zeros(8, 4)
        optimizer = torch.optim.SGD(cell.parameters(), 0.01, fused=True)
        for step in range(40):
            if step % window == 0:
                hidden = hidden.detach()
            hidden = cell(X, hidden)
            optimizer.zero_grad()
            hidden.pow(2).mean().backward(retain_graph=True)
            optimizer.step()
    assert [event.steps for event in events if isinstance(event, GraphsChained)] == ([16, 32] if window == 1000 else [])
