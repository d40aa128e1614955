"""Evaluations on rows that are equal to rows of a training table, which has many of them several times."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import RowsEvaluated
from truestep.testing import capture_events

ROWS = 300


def repeated_before(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the parts of a split of rows, of which the first hundred are there four times."""
    rows = torch.cat([torch.arange(ROWS), torch.arange(100).repeat(3)])
    rows = rows[torch.randperm(len(rows))]
    return x[rows[:450]], x[rows[450:]]


def repeated_after(x: Tensor) -> tuple[Tensor, Tensor]:
    rows = torch.randperm(ROWS)
    return x[rows[:200]].repeat(2, 1), x[rows[200:]]


def evaluated(split: tuple[Tensor, Tensor]) -> RowsEvaluated:
    train, held_out = split
    model = nn.Linear(train.shape[1], 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(6):
            rows = torch.arange(step * 64, step * 64 + 64) % len(train)
            F.cross_entropy(model(train[rows]), torch.zeros(64, dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            model(held_out)
    return [event for event in events if isinstance(event, RowsEvaluated)][-1]


def test_copies_that_were_made_before_the_split_are_counted() -> None:
    torch.manual_seed(0)
    event = evaluated(repeated_before(torch.randn(ROWS, 5)))
    assert (event.copies, event.table) == (True, "split[1]")
    assert 20 < event.hits < event.samples
    assert event.rows > event.hits


def test_copies_within_the_training_are_not_in_the_evaluation() -> None:
    torch.manual_seed(0)
    event = evaluated(repeated_after(torch.randn(ROWS, 5)))
    assert (event.copies, event.hits) == (True, 0)


@pytest.mark.parametrize("x", [torch.randint(0, 4, (ROWS, 6)).float(), torch.randn(ROWS, 3)], ids=["codes", "narrow"])
def test_rows_that_can_be_equal_by_chance_are_not_compared(x: Tensor) -> None:
    torch.manual_seed(0)
    assert not evaluated(repeated_before(x)).copies


def test_a_memory_that_is_written_in_the_run_and_rows_of_zeros_are_no_copies() -> None:
    torch.manual_seed(0)
    rows = torch.randn(ROWS, 5)
    held_out, memory = rows[:100].clone(), torch.zeros(2 * ROWS, 5)
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(6):
            memory[step * 50 : step * 50 + 50] = rows[step * 50 : step * 50 + 50]
            batch = memory[torch.randint(0, step * 50 + 50, (64,))]
            F.cross_entropy(model(batch), torch.zeros(64, dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            model(held_out)
    assert not any(event.copies for event in events if isinstance(event, RowsEvaluated))


def drawn(rows: int, *, before: bool) -> tuple[Tensor, Tensor]:
    """Return places that are drawn with repeats, before or after the split."""
    if before:
        places = torch.randint(rows, (rows,))
        return places[:450], places[450:]
    order = torch.randperm(rows)
    return order[:450][torch.randint(450, (600,))], order[450:]


def of_one_table(x: Tensor, places: tuple[Tensor, Tensor]) -> list[RowsEvaluated]:
    """Return the comparisons of an evaluation with rows of a table that the program holds."""
    train, held_out = x[places[0]], x[places[1]]
    model = nn.Linear(x.shape[1], 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(6):
            rows = torch.arange(step * 64, step * 64 + 64) % len(train)
            F.cross_entropy(model(train[rows]), torch.zeros(64, dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            model(held_out)
    return [event for event in events if isinstance(event, RowsEvaluated) and event.copies]


def codes(rows: int = 600) -> Tensor:
    """Return different rows of few values, then some that are equal by nature."""
    x = torch.randint(0, 5, (rows, 12)).float()
    x[-20:] = x[:20]
    return x


def test_rows_of_a_table_of_different_rows_are_equal_if_they_were_drawn_several_times() -> None:
    torch.manual_seed(0)
    (event,) = of_one_table(codes(), drawn(600, before=True))
    assert event.hits > 20


def test_rows_that_the_table_has_several_times_do_not_count() -> None:
    torch.manual_seed(0)
    (event,) = of_one_table(codes(), drawn(600, before=False))
    assert event.hits == 0
