"""Parts of a batch that models are called on: equal to each other, or of equal rows; and the lines that make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from truestep.events import Event, PartsCompared, RowsEqualled
from truestep.testing import capture_events

Pair = tuple[torch.Tensor, torch.Tensor]


def two_draws() -> Pair:
    return torch.randn(16, 5), torch.randn(16, 5)


def one_draw_copied() -> Pair:
    draw = torch.randn(16, 5)
    return draw, draw.clone()


def one_row() -> Pair:
    return torch.randn(1, 5).repeat(16, 1), torch.randn(1, 5).repeat(16, 1)


def train(draw: Callable[[], Pair], *, joined: bool = False) -> list[Event]:
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            first, second = draw()
            optimizer.zero_grad()
            out = model(torch.cat([first, second])) if joined else model(first) * model(second)
            out.sum().backward()
            optimizer.step()
    return events


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_equal_parts_are_named_with_the_end_of_the_function_that_makes_them() -> None:
    (found, *others) = of(PartsCompared, train(one_draw_copied))
    assert (found.one, found.other, found.equal, len(others)) == ("first", "second", True, 3)
    assert found.made.line == one_draw_copied.__code__.co_firstlineno + 2


@pytest.mark.parametrize("draw", [two_draws, one_row])
def test_different_parts_and_equal_rows_are_not_equal_parts(draw: Callable[[], Pair]) -> None:
    assert {event.equal for event in of(PartsCompared, train(draw))} == {False}


def train_on_copies() -> list[Event]:
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            first = torch.randn(16, 5)
            second = first.clone()
            (model(first) * model(second)).sum().backward()
            optimizer.step()
    return events


def test_a_copy_is_not_an_equal_part() -> None:
    assert [event.equal for event in of(PartsCompared, train_on_copies())] == [False] * 4


class Joined(nn.Linear):
    """A model of a state and a goal."""

    def forward(self, state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.cat([state, goal], 1))


def bits(rows: int = 5) -> torch.Tensor:
    numbers = torch.randperm(32)[:rows]
    return torch.stack([(numbers >> place) & 1 for place in range(5)], 1).float()


def replay(states: Callable[[], torch.Tensor], *, moved: bool = False, second: bool = False) -> list[bool]:
    """Return whether states and next states of a small replay, and of two models, were equal."""
    model, target = Joined(10, 2), Joined(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            kept = states()
            state = torch.tensor(kept.tolist())
            next_state = torch.tensor((1 - kept if moved else kept).tolist())
            goal, aim = torch.rand(len(kept), 5), torch.rand(len(kept), 5)
            for _ in range(2):
                with torch.no_grad():
                    value = target(aim, next_state) if second else target(next_state, aim)
            loss = ((model(goal, state) if second else model(state, goal)) - value).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = of(PartsCompared, events)
    return [event.equal for event in found if {event.one, event.other} == {"state", "next_state"}]


def test_states_of_bits_in_small_batches() -> None:
    assert replay(bits) == [True] * 4
    assert replay(bits, moved=True) == [False] * 4


def test_few_values_that_are_masks_classes_or_one_row() -> None:
    assert replay(bits, second=True) == [False] * 4  # second arguments may be masks
    assert replay(lambda: torch.eye(5)) == []
    assert replay(lambda: bits(1).repeat(5, 1)) == []
    assert replay(lambda: bits(2)[[0, 1, 0, 1, 1]]) == []  # two states


def test_two_equal_halves_of_an_argument() -> None:
    assert [event.one for event in of(PartsCompared, train(one_draw_copied, joined=True))] == ["first half"] * 4
    assert of(PartsCompared, train(two_draws, joined=True)) == []


def test_equal_rows_of_every_argument() -> None:
    found = of(RowsEqualled, train(one_row))
    assert {event.equal for event in found} == {True}
    assert found[0].made.line == one_row.__code__.co_firstlineno + 1


def test_different_rows_are_an_event_once() -> None:
    assert [event.equal for event in of(RowsEqualled, train(two_draws))] == [False]


def test_equal_rows_of_few_values_are_constant() -> None:
    found = of(RowsEqualled, train(lambda: (torch.zeros(16, 5), torch.zeros(16, 5))))
    assert {(event.equal, event.constant, event.moved) for event in found} == {(True, True, False)}


class Views(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Pair:
        view = torch.randn(5)
        return view, view


def train_on_views() -> list[Event]:
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for first, second in DataLoader(Views(), batch_size=16):
            (model(first) * model(second)).sum().backward()
            optimizer.step()
    return events


def test_the_line_of_a_data_set_that_returns_a_sample() -> None:
    found = of(PartsCompared, train_on_views())
    assert [event.equal for event in found] == [True] * 4
    assert found[0].made.line == Views.__getitem__.__code__.co_firstlineno + 2


@pytest.mark.parametrize("draw", [one_draw_copied, one_row])
def test_parts_of_an_evaluation_are_not_compared(draw: Callable[[], Pair]) -> None:
    model = nn.Linear(5, 3)
    with capture_events() as events, torch.no_grad():
        first, second = draw()
        model(first) * model(second)
    assert of(PartsCompared, events) == of(RowsEqualled, events) == []
