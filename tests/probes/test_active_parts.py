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
