"""Rows of the program's own tables: read in training, paired with targets, read in evaluations."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import Event, PartUnused, RowsEvaluated, RowsPaired, RowsRead, RowsUnread
from truestep.probes.active.rows import names
from truestep.testing import capture_events

ROWS = 200


def table() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(ROWS, 5), torch.randint(0, 3, (ROWS,))


def train(batch: Any, *, steps: int = 4, after: Any = None) -> list[Event]:
    """Return the events of a training on the batches that a function returns, and of an evaluation."""
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(steps):
            inputs, targets = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if after is not None:
            with torch.no_grad():
                model(after)
    return events


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def indexed(
    index: torch.Tensor, targets: torch.Tensor | None = None, *, part: int = ROWS, after: Any = None
) -> list[Event]:
    """Return the events of a training on rows of a table, outside of a test, since `assert` uses the locals."""
    x, y = (one[:part] for one in table())
    return train(lambda _: (x[index], y[index] if targets is None else targets), after=after)


def test_rows_of_a_tensor_by_index() -> None:
    reads = of(RowsRead, indexed(torch.arange(3, 163, 5)))
    assert {(read.table, read.rows, read.least, read.most) for read in reads} == {("x", ROWS, 3, 158)}
    assert [read.fresh for read in reads] == [32, 32, 0, 0]  # the optimizer is known after the first step


class Sample(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


class Buffer:
    def __init__(self, states: torch.Tensor) -> None:
        self.states = states


def held_as(form: str) -> list[Event]:
    x, y = table()
    held: Any = x.numpy().astype(np.float64)
    if form in ("list", "deque"):
        held = (list if form == "list" else deque)(zip(x, y, strict=True))
    if form == "named tuples":
        held = deque(map(Sample, x, y))
    if form == "object":
        held = Buffer(x)
    inputs, targets = x[20:60].clone(), y[20:60]
    del x
    events = train(lambda _: (inputs, targets), steps=1)
    del held
    return events


@pytest.mark.parametrize("form", ["array", "list", "deque", "named tuples", "object"])
def test_other_tables(form: str) -> None:
    (read,) = of(RowsRead, held_as(form))
    assert read.table.startswith("held")
    assert (read.least, read.most, read.read) == (20, 59, 40)


def test_targets_of_the_same_and_of_other_rows() -> None:
    index, (_, y) = torch.randperm(ROWS)[:50], table()
    assert {pair.equal for pair in of(RowsPaired, indexed(index))} == {True}
    assert {pair.equal for pair in of(RowsPaired, indexed(index, y[:50]))} == {False}


def of_columns(own: bool) -> list[Event]:
    """Return the events of a training on one column of targets that have several."""
    x = table()[0]
    boxes = torch.rand(ROWS, 4)
    index = torch.randperm(ROWS)[:50]
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            chosen = boxes[index] if own else boxes[:50]
            F.mse_loss(model(x[index])[:, 0], chosen[:, 1]).backward()
            optimizer.step()
    return events


@pytest.mark.parametrize("own", [True, False])
def test_a_column_of_targets_stands_for_their_rows(own: bool) -> None:
    pairs = of(RowsPaired, of_columns(own))
    assert {(pair.other, pair.equal) for pair in pairs} == {("boxes", own)}


def test_targets_that_are_made_for_the_batch_are_from_no_table() -> None:
    events = indexed(torch.randperm(ROWS)[:50], (torch.arange(50) + 1) % 3)
    assert of(RowsRead, events)
    assert of(RowsPaired, events) == []


@pytest.mark.parametrize(("start", "hits"), [(0, 40), (100, 0)])
def test_rows_of_an_evaluation(start: int, hits: int) -> None:
    events = indexed(torch.randperm(100), after=table()[0][start : start + 40])
    (read,) = of(RowsEvaluated, events)
    assert (read.hits, read.samples) == (hits, 40)


def split() -> list[Event]:
    x, y = table()
    part, labels, held_out = x[:150], y[:150], x[:50].clone()
    index = torch.randperm(150)
    return train(lambda _: (part[index], labels[index]), after=held_out)


def test_rows_that_nothing_reads() -> None:
    events = split()
    assert [read.own for read in of(RowsEvaluated, events)] == [True]
    assert "x" in {left.table for left in of(RowsUnread, events)}


def windows() -> tuple[list[Event], int]:
    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (400,))
    model = nn.Sequential(nn.Embedding(50, 4), nn.Flatten(), nn.Linear(32, 50))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    starts = torch.randint(0, 390, (16,))
    with capture_events() as events:
        batch = torch.stack([tokens[start : start + 8] for start in starts])
        F.cross_entropy(model(batch), tokens[starts + 8]).backward()
        optimizer.step()
    return events, int(starts.min())


def test_windows_of_a_sequence() -> None:
    events, least = windows()
    (read,) = of(RowsRead, events)
    assert (read.table, read.rows, read.least) == ("tokens", 393, least)


def train_on_permutations() -> list[Event]:
    x, _ = table()
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            first = x[torch.randperm(16)]
            second, third = first.roll(1, 0), torch.randn(16, 5)
            (model(first) + model(second) + model(third)).sum().backward()
            optimizer.step()
    return events


def test_an_argument_is_not_compared_with_itself() -> None:
    assert [event for event in of(RowsPaired, train_on_permutations()) if not event.equal] == []


class Split:
    def __init__(self, x: torch.Tensor) -> None:
        self.train, self.valid, self.test = [(part,) for part in x.split([100, 50, 50])]

    def run(self, measured: str) -> list[Event]:
        (x,) = self.train
        (after,) = self.test if measured == "test" else self.valid
        return train(lambda step: (x[25 * step : 25 * step + 25], torch.arange(25) % 3), after=after)


class UntouchedSplit(Split):
    def __init__(self, x: torch.Tensor) -> None:
        super().__init__(x)
        self.pristine = x.flip(0) + 1.0


@pytest.mark.program
def test_attributes_that_no_statement_reads_are_unused_parts() -> None:
    assert not of(PartUnused, Split(table()[0]).run("test"))
    (unused,) = of(PartUnused, UntouchedSplit(table()[0]).run("test"))
    assert unused.name == "self.pristine"
    assert unused.site is not None
    assert unused.site.path == __file__


def test_files_are_read_only_until_every_attribute_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    known = names._attributes_of

    def attributes_of(path: str) -> Any:
        read.append(path)
        return known(path)

    monkeypatch.setattr(names, "_attributes_of", attributes_of)
    x, _ = table()
    events = train(lambda step: (x[25 * step : 25 * step + 25], torch.arange(25) % 3), after=x[150:])
    assert of(RowsEvaluated, events)
    assert not read
    Split(x).run("test")
    assert set(read) == {__file__}  # of all files that the tests import


def test_a_part_that_is_read_under_a_name_that_is_put_together_is_not_unused() -> None:
    class Named(Split):
        def run(self, measured: str) -> list[Event]:
            (x,), (after,) = self.train, getattr(self, measured[:2] + measured[2:])
            return train(lambda step: (x[25 * step : 25 * step + 25], torch.arange(25) % 3), after=after)

        def __init__(self, x: torch.Tensor) -> None:
            super().__init__(x)
            self.hidden_part = (x[150:] + 1.0,)

    assert not of(PartUnused, Named(table()[0]).run("_".join(("hidden", "part"))))
    assert {one.name for one in of(PartUnused, Named(table()[0]).run("test"))} == {"self.hidden_part[0]"}


def test_variables_that_nothing_reads_are_unused_parts_unless_their_word_is_read() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> list[Event]:
        x_val, x_test = x[100:150], x[150:]  # noqa: F841
        y_test = y[150:]  # noqa: F841
        return train(lambda step: (x[25 * step : 25 * step + 25], y[:25]), after=x_test)

    assert {one.name for one in of(PartUnused, program(*table()))} == {"x_val"}


class Mixed(nn.Module):
    """Reads categories before numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(3, 4), nn.Linear(9, 3)

    def forward(self, codes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([self.embedding(codes).mean(1), numbers], 1))


def train_on_codes_and_numbers() -> list[Event]:
    x, y = table()
    codes, model = torch.randint(0, 3, (ROWS, 2)), Mixed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            rows = torch.arange(10, 50)
            F.cross_entropy(model(codes[rows], x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            model(codes[10:40], x[10:40])
    return events


def test_rows_of_categories_and_numbers_are_known_by_their_numbers() -> None:
    events = train_on_codes_and_numbers()
    assert {(read.table, read.least, read.most) for read in of(RowsRead, events)} == {("x", 10, 49)}
    assert of(RowsEvaluated, events)[-1].hits == 30
