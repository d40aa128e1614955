"""Statistics of the tables of evaluations, next to those of the training."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import ScalingRead
from truestep.probes.active.fitted.column_order import order_of, ranks_of
from truestep.probes.active.rows.moments import views_of
from truestep.testing import capture_events


def scaled(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return (x - by.mean(0)) / by.std(0)


def ranged(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return (x - by.amin(0)) / (by.amax(0) - by.amin(0))


def raw(rows: int = 400) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(rows, 6).exp() * torch.arange(1, 7)


def reads(x_train: torch.Tensor, *parts: torch.Tensor) -> list[tuple[str, str, int]]:
    """Return the facts of evaluations on parts, after a training on a table."""
    model = nn.Linear(x_train.shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with capture_events() as events:
        for _ in range(4):
            rows = torch.randperm(len(x_train))[:32]
            optimizer.zero_grad()
            F.mse_loss(model(x_train[rows]), torch.zeros(32, 1)).backward()
            optimizer.step()
        with torch.no_grad():
            for part in parts:
                model(part)
    return [(one.kind, one.how, one.features) for one in events if isinstance(one, ScalingRead)]


@pytest.mark.parametrize(("scale", "how"), [(scaled, "standard"), (ranged, "range")])
def test_statistics_of_the_evaluation_alone_of_both_and_of_the_training(scale, how):
    x = raw()
    train, rest = x[:300], x[300:]
    assert reads(scale(train, train), scale(rest, rest)) == [("own", how, 6)]
    assert reads(scale(train, x), scale(rest, x)) == [("joint", how, 6)]
    assert reads(scale(train, train), scale(rest, train)) == [("", "", 0)]
    assert reads(train, rest) == [("", "", 0)]


@pytest.mark.parametrize(("gain", "kind"), [(1.5, "own"), (4.0, "")])
def test_tables_as_measured_show_two_domains_by_their_deviations(gain, kind):
    x = raw()
    train, rest = x[:300], gain * x[300:] + 5
    assert [one[0] for one in reads(scaled(train, train), scaled(rest, rest))] == [kind]


def test_a_shift_alone_is_no_other_domain():
    x = raw()
    train, rest = x[:300], x[300:] + 20
    assert [one[0] for one in reads(scaled(train, train), scaled(rest, rest))] == ["own"]


def test_the_line_that_made_a_table_is_known():
    x = raw()
    train, rest = scaled(x[:300], x[:300]), x[300:]
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with capture_events() as events:
        for _ in range(4):
            F.mse_loss(model(train[torch.randperm(300)[:32]]), torch.zeros(32, 1)).backward()
            optimizer.step()
        with torch.no_grad():
            test = scaled(rest, rest)
            model(test)
    (read,) = (one for one in events if isinstance(one, ScalingRead))
    assert (read.kind, read.made.line) == ("own", read.site.line - 1)


def test_three_parts_of_a_table_are_joined():
    parts = [part.clone() for part in scaled(raw(), raw()).split([250, 80, 70])]
    assert [kind for kind, _, _ in reads(*parts)] == ["", "joint", "joint"]


def test_rows_of_the_training_are_no_evaluation():
    x = scaled(raw(), raw())
    assert reads(x, x, x[:100].clone()) == []


def test_groups_of_rows_with_statistics_of_their_own_are_not_counted():
    groups = raw(400).reshape(20, 20, 6)
    groups = (groups - groups.mean(1, keepdim=True)) / groups.std(1, keepdim=True, correction=0)
    (view,) = (view for view in views_of(torch, groups.flatten(0, 1)) if view.kind == "columns")
    assert view.grouped
    assert view.standardised() == 0


def test_columns_of_few_values_and_single_columns_are_not_counted():
    signs = torch.randn(400, 6).sign()
    assert [view.standardised() for view in views_of(torch, scaled(signs, signs))] == [0]
    assert views_of(torch, scaled(raw(), raw())[:, :1]) == []
    (view,) = views_of(torch, scaled(raw(), raw())[:, :3])
    assert (view.standardised(), view.few()) == (0, "standard")
    assert [view.standardised() for view in views_of(torch, scaled(raw(), raw()))] == [6]


@pytest.mark.parametrize(("scale", "how"), [(scaled, "standard"), (ranged, "range")])
def test_two_columns_with_their_own_statistics_are_read(scale, how):
    x = raw()[:, :2]
    train, rest = x[:300], x[300:]
    assert reads(scale(train, train), scale(rest, rest)) == [("own", how, 2)]
    assert reads(scale(train, train), scale(rest, train)) == [("", "", 0)]


def test_columns_that_are_functions_of_one_number_are_not_counted():
    train, rest = (torch.linspace(0, 1, rows)[:, None] ** torch.arange(1, 5) for rows in (200, 90))
    assert ranged(rest, rest).amax() == 1
    assert reads(train, rest) == reads(train[:, :2], rest[:, :2]) == [("", "", 0)]


def test_quartiles_of_the_evaluation_are_read():
    def robust(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        low, middle, high = by.double().quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64), 0)
        return ((x - middle) / (high - low)).float()

    train, rest = raw()[:300], raw()[300:]
    assert reads(robust(train, train), robust(rest, rest)) == [("own", "robust", 6)]
    assert reads(robust(train, train), robust(rest, train)) == [("", "", 0)]


def test_another_kind_of_scaling_than_in_training_is_read():
    x = torch.rand(400, 6) * torch.arange(1, 7)
    train, rest = x[:300], x[300:]
    assert reads(scaled(train, train), ranged(rest, train)) == [("unlike", "range", 6)]
    assert reads(ranged(train, train), scaled(rest, train)) == [("unlike", "standard", 6)]


def test_a_training_on_all_rows_at_once_has_a_table():
    x = raw()
    train, rest = scaled(x[:300], x[:300]), scaled(x[300:], x[300:])
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with capture_events() as events:
        for _ in range(4):
            optimizer.zero_grad()
            model(train).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            model(rest)
    (read,) = (one for one in events if isinstance(one, ScalingRead))
    assert (read.kind, read.trained) == ("own", "train")


def test_columns_in_another_order_are_read():
    torch.manual_seed(5)
    x = (torch.randn(500, 8) @ torch.randn(8, 8)).exp().log1p()
    train, rest = scaled(x[:300], x[:300]), scaled(x[300:], x[:300])

    def order(*parts: torch.Tensor) -> list[tuple[bool, int]]:
        ranks = [ranks_of(torch, part) for part in parts]
        return [tuple(order_of(torch, one, ranks_of(torch, train))) for one in ranks]  # type: ignore[arg-type, misc]

    moved = rest[:, [1, 2, 3, 0, 4, 5, 6, 7]]
    assert order(rest, moved, rest.flip(1)) == [(True, 0), (False, 4), (False, 8)]
    assert order(rest[:, [1, 0, *range(2, 8)]], -rest, rest @ torch.linalg.qr(torch.randn(8, 8))[0]) == [(False, 0)] * 3
    assert ranks_of(torch, torch.ones(40, 8)) is None
