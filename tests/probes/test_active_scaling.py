"""Statistics of the tables of evaluations, next to those of the training."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import ScalingRead
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
    assert views_of(torch, scaled(raw(), raw())[:, :3]) == []
    assert [view.standardised() for view in views_of(torch, scaled(raw(), raw()))] == [6]
