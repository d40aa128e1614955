"""Rows of one result: those in the loss, and those that an evaluation selects, in any form of both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import ResultRowsScored
from truestep.testing import capture_events

N, TRAIN, TEST = 60, 20, 30
torch.manual_seed(0)
x, order = torch.randn(N, 5), torch.randperm(N)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
train_mask = torch.zeros(N, dtype=torch.bool).index_fill(0, order[:TRAIN], True)
test_mask = torch.zeros(N, dtype=torch.bool).index_fill(0, order[-TEST:], True)
idx_test = order[-TEST:]
parts = {"train": train_mask, "test": test_mask}

Loss = Callable[[torch.Tensor], torch.Tensor]


def right(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (out.argmax(1) == labels).float().mean()


def masked(model: nn.Module) -> None:
    out = model(x)
    print(right(out[test_mask], y[test_mask]))


def compared_first(model: nn.Module) -> None:
    hits = model(x).argmax(1) == y
    print([hits[mask].float().mean() for mask in (train_mask, test_mask)])


def multiplied(model: nn.Module) -> None:
    hits = (model(x).argmax(1) == y).float()
    print((hits * test_mask).sum() / test_mask.sum(), ((model(x).argmax(1) == y) & test_mask).sum())


def in_a_loop(model: nn.Module) -> None:
    out = model(x)
    for name, mask in parts.items():
        print(name, F.cross_entropy(out[mask], y[mask]).item())


def by_index(model: nn.Module) -> None:
    best = model(x).max(1)[1]
    print(best[idx_test].eq(y[idx_test]).sum().item())


def by_selection(model: nn.Module) -> None:
    best = model(x).softmax(-1).argmax(-1).index_select(0, idx_test)
    print((best != y[idx_test]).sum().item())


def by_slice(model: nn.Module) -> None:
    out = model(x)[order]
    print((out[-TEST:].argmax(1) == y[order][-TEST:]).sum())


def scored(
    evaluate: Callable[[nn.Module], None], loss: Loss, steps: int = 4, columns: int = 3
) -> list[ResultRowsScored]:
    """Return the selections in evaluations after each step."""
    torch.manual_seed(1)
    model = nn.Linear(5, columns)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(x)).backward()
            optimizer.step()
            with torch.no_grad():
                evaluate(model)
    return [event for event in events if isinstance(event, ResultRowsScored)]


def on_all(out: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out, y)


def on_some(out: torch.Tensor) -> torch.Tensor:
    return -out.log_softmax(1)[train_mask, y[train_mask]].mean()


@pytest.mark.parametrize("evaluate", [masked, compared_first, multiplied, in_a_loop, by_index, by_selection, by_slice])
def test_rows_are_found_in_every_form_of_an_evaluation(evaluate):
    one = [event for event in scored(evaluate, on_all) if event.samples == TEST]
    assert one
    assert all(event.hits == TEST and event.trained == event.rows == N and event.agreed for event in one)
    clean = [event for event in scored(evaluate, on_some) if event.samples == TEST]
    assert clean
    assert all(event.hits == 0 and event.trained == TRAIN and not event.agreed for event in clean)


def test_a_selection_has_the_names_of_all_variables_that_hold_it():
    first, second = scored(compared_first, on_all)[:2]
    assert (first.name, first.samples) == ("train_mask", TRAIN)
    assert (second.name, second.samples) == ("test_mask", TEST)
    assert {"test_mask", "parts['test']", "mask"} <= set(second.names)


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: F.cross_entropy(out, y.roll(1)),
        lambda out: -(out.softmax(1) * out.log_softmax(1)).sum(1).mean(),
        lambda out: on_some(out) + F.mse_loss(out.softmax(1), out.detach().softmax(1).roll(1, 0)),
    ],
    ids=["other labels", "entropy", "a regulariser of all rows"],
)
def test_gradients_towards_other_targets_do_not_agree(loss):
    assert not any(event.agreed for event in scored(masked, loss))


@pytest.mark.parametrize(
    ("loss", "target"),
    [(F.mse_loss, x[:, :1].sin()), (F.binary_cross_entropy_with_logits, (x[:, :1] > 0).float())],
    ids=["numbers", "classes"],
)
def test_a_result_of_one_column_agrees_with_numbers_and_with_classes(loss, target):
    def evaluate(model: nn.Module) -> None:
        out = model(x)
        print((out[test_mask] - target[test_mask]).abs().mean())

    found = scored(evaluate, lambda out: loss(out, target), columns=1)
    assert found
    assert all(event.agreed and event.hits == TEST for event in found)


def test_another_table_with_as_many_rows_is_not_the_same_input():
    other = x.flip(0)

    def evaluate(model: nn.Module) -> None:
        print(right(model(other)[test_mask], y[test_mask]))

    assert not scored(evaluate, on_all)
