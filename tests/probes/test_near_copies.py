"""Rows of an evaluation that were made out of rows of the training, by class."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import CopiesEvaluated
from truestep.testing import capture_events

RARE, OFTEN = 100, 500


def table() -> tuple[Tensor, Tensor]:
    return torch.randn(RARE + OFTEN, 6), torch.cat([torch.ones(RARE), torch.zeros(OFTEN)]).long()


def filled(x: Tensor, y: Tensor, how: str) -> tuple[Tensor, Tensor]:
    rare = x[y == 1]
    number = int((y == 0).sum()) - len(rare)
    first = torch.randint(0, len(rare), (number,))
    new = rare[first] + 0.02 * torch.randn(number, 6)
    if how == "between":
        near = torch.cdist(rare, rare).topk(4, largest=False).indices[:, 1:]
        second = near[first, torch.randint(0, 3, (number,))]
        new = rare[first] + torch.rand(number, 1) * (rare[second] - rare[first])
    return torch.cat([x, new]), torch.cat([y, torch.ones(number).long()])


def compared(x_train: Tensor, y_train: Tensor, x_test: Tensor, y_test: Tensor) -> CopiesEvaluated:
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(5):
            rows = torch.arange(step * 32, step * 32 + 32)
            F.cross_entropy(model(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            (model(x_test).argmax(1) == y_test).float().mean()
    (event,) = [event for event in events if isinstance(event, CopiesEvaluated)]
    return event


@pytest.mark.parametrize("how", ["copies", "between"])
def test_rows_that_were_made_before_the_split_are_counted(how: str) -> None:
    torch.manual_seed(1)
    x, y = filled(*table(), how)
    order = torch.randperm(len(x))
    train, test = order[:700], order[700:]
    event = compared(x[train], y[train], x[test], y[test])
    assert event.between == (how == "between")
    assert event.hits > 0.6 * event.compared
    assert event.free_hits <= 0.05 * event.free


@pytest.mark.parametrize("how", ["copies", "between"])
def test_rows_that_were_made_after_the_split_are_of_the_training_only(how: str) -> None:
    torch.manual_seed(1)
    x, y = table()
    order = torch.randperm(len(x))
    train, test = order[:300], order[300:]
    event = compared(*filled(x[train], y[train], how), x[test], y[test])
    assert event.hits <= 0.2 * event.compared
