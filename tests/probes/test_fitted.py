"""Inputs that are scaled with the statistics of all rows of a table as measured, those of the evaluation included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import ScalingRead
from truestep.probes.active.fitted.measured import Measured
from truestep.probes.active.fitted.spread import kind_of, statistics, tolerance
from truestep.testing import capture_events

ROWS = 600


def raw(rows: int = ROWS, columns: int = 5) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(4)).exp() * 3 + 10


def standard(x: Tensor, by: Tensor) -> Tensor:
    return (x - by.mean(0)) / by.std(0)


def ranged(x: Tensor, by: Tensor) -> Tensor:
    return (x - by.amin(0)) / (by.amax(0) - by.amin(0))


def robust(x: Tensor, by: Tensor) -> Tensor:
    low, middle, high = torch.quantile(by, torch.tensor([0.25, 0.5, 0.75]), 0)
    return (x - middle) / (high - low)


def train(model: nn.Module, x: Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(4):
        for rows in torch.arange(len(x)).roll(7 * epoch).split(60):
            F.mse_loss(model(x[rows]), torch.zeros(len(rows), 1)).backward()
            optimizer.step()
            optimizer.zero_grad()


def found(events: list[object]) -> list[tuple[str, int]]:
    return [(one.how, one.features) for one in events if isinstance(one, ScalingRead) and one.fitted]


def evaluated(measured: Tensor, x: Tensor, held: Tensor, other: Tensor | None = None) -> list[tuple[str, int]]:
    """Return the scalings of a training and an evaluation, in a function that holds the table (and has no assert)."""
    model = nn.Linear(x.shape[1], 1)
    with capture_events() as events:
        train(model, x)
        with torch.no_grad():
            for one in (held, other):
                if one is not None:
                    model(one)
    return found(events)


@pytest.mark.parametrize(("scaled", "how"), [(standard, "sample"), (robust, "robust")])
def test_statistics_of_all_rows_are_found(scaled, how: str) -> None:
    table = raw()
    x = scaled(table, table)[torch.randperm(ROWS)[:500]]  # a hundred rows are in neither part
    assert evaluated(table, x[:350], x[350:]) == [(how, 5)]


def test_statistics_of_the_training_are_not() -> None:
    table = raw()
    rows = torch.randperm(ROWS)[:500]
    x = standard(table[rows], table[rows[:350]])
    assert evaluated(table, x[:350], x[350:]) == []


def test_an_evaluation_on_other_rows_is_enough() -> None:
    table, later = raw(), raw(900)[ROWS:]
    x = standard(table, table)[torch.randperm(ROWS)[:500]]
    assert evaluated(table, x[:350], x[350:], standard(later, table)) == []


def test_an_evaluation_on_the_rows_of_the_training_is_none() -> None:
    table = raw()
    x = standard(table, table)[torch.randperm(ROWS)[:500]]
    assert evaluated(table, x[:350], x[:200]) == []


def pretrained(measured: Tensor, x: Tensor, held: Tensor) -> list[tuple[str, int]]:
    """Return the scalings of two trainings, the first one on all rows."""
    model = nn.Linear(x.shape[1], 1)
    with capture_events() as events:
        train(model, torch.cat([held, x]))
        train(model, x)
        with torch.no_grad():
            model(held)
    return found(events)


def test_rows_of_an_earlier_training_are_known() -> None:
    table = raw()
    x = standard(table, table)[torch.randperm(ROWS)[:500]]
    assert pretrained(table, x[:350], x[350:]) == []


def test_minima_and_maxima_count_if_the_training_does_not_reach_them() -> None:
    table = raw()
    bounds = torch.cat([table.argmin(0), table.argmax(0)]).unique()
    rest = torch.tensor(sorted(set(range(ROWS)) - set(bounds.tolist())))
    x = ranged(table, table)
    held = torch.cat([bounds, rest[:150]])
    assert evaluated(table, x[rest[150:]], x[held]) == [("range", 5)]
    inside = torch.cat([bounds, rest[150:]])[torch.randperm(len(rest) - 150 + len(bounds))]
    assert evaluated(table, x[inside], x[rest[:150]]) == []


def test_few_columns_count_if_the_training_has_other_statistics() -> None:
    table = raw(columns=2)
    table = table[table[:, 0].argsort()]
    x = standard(table, table)
    shuffled = x[torch.randperm(ROWS)]
    assert evaluated(table, x[:400], x[400:]) == [("sample", 2)]
    assert evaluated(table, shuffled[:400], shuffled[400:]) == []


def series(steps: int = 700) -> Tensor:
    draw = torch.Generator().manual_seed(2)
    return torch.arange(steps) * 0.02 + torch.sin(torch.arange(steps) / 9) + torch.randn(steps, generator=draw) + 20


def windows(x: Tensor, length: int = 12) -> Tensor:
    return x.unfold(0, length, 1).contiguous()


@pytest.mark.parametrize(("scaled", "how"), [(standard, "sample"), (ranged, "range")])
def test_a_series_is_found_by_its_windows(scaled, how: str) -> None:
    whole = series()
    x = windows(scaled(whole, whole))
    assert evaluated(whole, x[:480], x[500:]) == [(how, 1)]
    y = windows(scaled(whole, whole[:500]))
    assert evaluated(whole, y[:480], y[500:]) == []


def test_a_series_that_repeats_has_the_same_statistics_in_all_its_parts() -> None:
    wave = torch.sin(torch.arange(1000) * 2 * torch.pi / 50).double() + 3
    x = windows(standard(wave, wave).float())
    assert evaluated(wave, x[:740], x[750:]) == []


@pytest.mark.parametrize("turned", [False, True])
def test_windows_of_several_columns_are_found_in_both_orders(turned: bool) -> None:
    whole = torch.stack([series(), series().flip(0).exp().log1p() * 2], 1)
    scaled = standard(whole, whole)
    some = scaled.unfold(0, 8, 1)[torch.tensor([3, 100, 431])]
    rows = some.flatten(1) if turned else some.transpose(1, 2).flatten(1)
    places = Measured(torch, whole, 8, turned=turned).places(rows, "sample", 1)
    assert places is not None
    assert places.rows.tolist() == [3, 100, 431]
    assert places.columns == (0, 1)


def test_columns_that_were_transformed_before_are_left_out() -> None:
    table = raw()
    other = table.clone()
    other[:, 3] = other[:, 3].log()
    places = Measured(torch, table, 0).places(standard(other, other)[40:90], "sample", 2)
    assert places is not None
    assert places.columns == (0, 1, 2, 4)
    assert places.rows.tolist() == list(range(40, 90))


def test_rows_with_more_columns_than_the_table_are_found_by_the_first_ones() -> None:
    table = raw()
    rows = torch.cat([standard(table, table), torch.eye(ROWS)[:, :4]], 1)[:30]
    places = Measured(torch, table, 0).places(rows, "sample", 2)
    assert places is not None
    assert len(places.columns) == 5


def test_a_table_that_is_scaled_already_is_not_looked_up() -> None:
    table = standard(raw(), raw())
    assert Measured(torch, table, 0).places(table[:50], "sample", 2) is None


def test_kinds_of_columns() -> None:
    assert kind_of(torch.tensor([0.0, 1.0] * 50)) == ""
    assert kind_of(torch.arange(60.0)) == "grid"
    assert kind_of(torch.rand(60)) == "measured"
    assert kind_of(torch.cat([torch.rand(60), torch.tensor([torch.nan])])) == ""


def test_bounds_that_are_known_without_the_data_are_no_statistics() -> None:
    draw = torch.rand(80) * 99 + 0.5
    assert statistics(torch.cat([draw, torch.tensor([0.0, 100.0])]), "range")[1] == 0
    assert statistics(torch.cat([draw, torch.tensor([0.1234, 99.87])]), "range")[1] > 0
    assert statistics(torch.cat([draw, torch.tensor([0.1234] * 3)]), "range")[1] == 0  # cut off


def test_a_column_far_from_zero_is_too_coarse() -> None:
    assert tolerance(1.6e9, 10.0) == 0
    assert tolerance(20.0, 3.0) > 0
    assert tolerance(0.0, 1.0) == 0  # it was not scaled


def test_numpy_arrays_are_read() -> None:
    table = raw().double().numpy()
    scaled = ((table - table.mean(0)) / table.std(0)).astype(np.float32)
    x = torch.from_numpy(scaled)[torch.randperm(ROWS)[:500]]
    assert evaluated(table, x[:350], x[350:]) == [("standard", 5)]
