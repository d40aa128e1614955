"""Targets next to the batch that a loader gave: the same samples, or the same ones in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import Event, RowsPaired
from truestep.probes.active.rows.orders import compare, is_read
from truestep.testing import capture_events

ROWS = 32
Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def train(loss: Loss, model: nn.Module | None = None) -> list[Event]:
    """Return the events of a training with a loss of a model, its inputs and their classes."""
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(160, 6), torch.randint(0, 4, (160,))), batch_size=ROWS, shuffle=True)
    model = nn.Linear(6, 4) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for x, y in loader:
            optimizer.zero_grad()
            loss(model, x, y).backward()
            optimizer.step()
    return events


def pairs(loss: Loss, model: nn.Module | None = None) -> list[tuple[str, str, bool]]:
    found = [one for one in train(loss, model) if isinstance(one, RowsPaired) and one.batch]
    return sorted({(one.table, one.other, one.equal) for one in found})


def shuffled(value: torch.Tensor) -> torch.Tensor:
    return value[torch.randperm(len(value))]


def in_another_place(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    order = torch.randperm(len(x))
    return F.cross_entropy(model(x[order])[order.argsort()], y)


SAME: dict[str, Loss] = {
    "plain": lambda model, x, y: F.cross_entropy(model(x), y),
    "noisy": lambda model, x, y: F.cross_entropy(model(x + 0.01 * torch.randn_like(x)), y),
    "one-hot": lambda model, x, y: F.cross_entropy(model(x), F.one_hot(y, 4).float()),
    "both": lambda model, x, y: F.cross_entropy(model(x.flip(0)), y.flip(0)),
    "numbered": lambda model, x, y: F.cross_entropy(model(x), 3 - y),
}
OTHER: dict[str, Loss] = {
    "permutation": lambda model, x, y: F.cross_entropy(model(x), shuffled(y)),
    "roll": lambda model, x, y: F.cross_entropy(model(x), y.roll(1, 0)),
    "inputs": lambda model, x, y: F.cross_entropy(model(shuffled(x)), y),
    "scaled inputs": lambda model, x, y: F.cross_entropy(model(shuffled(x) * 3 - 1), y),
    "results": lambda model, x, y: F.cross_entropy(torch.cat([model(part) for part in x.chunk(4)[::-1]]), y),
    "one-hot": lambda model, x, y: F.cross_entropy(model(x), F.one_hot(y.flip(0), 4).float()),
}


@pytest.mark.parametrize("name", SAME)
def test_targets_of_the_same_samples(name: str) -> None:
    assert pairs(SAME[name]) == [("x", "y", True)]


@pytest.mark.parametrize("name", OTHER)
def test_targets_of_other_samples(name: str) -> None:
    assert pairs(OTHER[name]) == [("x", "y", False)]


def test_results_that_are_sorted_back_are_not_judged() -> None:
    assert pairs(in_another_place) == []


class Scored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return F.cross_entropy(self.head(x), y)


def test_a_loss_inside_the_model_is_compared_with_its_arguments() -> None:
    assert pairs(lambda model, x, y: model(x, y), Scored()) == [("x", "y", True)]
    assert pairs(lambda model, x, y: model(x, y.roll(1, 0)), Scored()) == [("x", "y", False)]


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def test_values_in_another_scale_are_known_by_their_gaps() -> None:
    value = torch.randn(20, 1)
    order = compare(torch, value, shuffled(value) * 5 + 2)
    assert order is not None
    assert not order.equal
    assert compare(torch, value, torch.randn(20, 1)) is None


def test_evenly_spaced_values_are_not_known() -> None:
    value = torch.arange(20.0)[:, None]
    assert compare(torch, value, shuffled(value) * 2) is None


def test_a_permutation_that_the_program_holds_is_less_likely_by_chance() -> None:
    index, labels = torch.randperm(40), torch.randint(0, 2, (40, 1)).float()
    alone, held = (compare(torch, labels, labels[index], known) for known in (list, lambda: [index]))
    assert alone is not None
    assert held is not None
    assert held.chance < alone.chance
    assert held.known


def test_few_exchanged_labels_are_noise() -> None:
    labels = torch.arange(40) % 4
    noisy = labels.clone()
    noisy[[0, 1, 2, 3]] = labels[[1, 2, 3, 0]]
    assert compare(torch, labels[:, None].float(), noisy[:, None].float()) is None


def test_a_target_among_the_columns_of_an_argument_is_read() -> None:
    table = torch.randn(10, 5)
    assert is_read(torch, table[:, 2:4], [table])
    assert not is_read(torch, table[:, 2:4].flip(0), [table])
    classes = column(*([0.0, 1.0, 2.0] * 3))
    assert is_read(torch, classes, [F.one_hot(classes[:, 0].long(), 3).float()])


def log_p(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).log_softmax(1)


WRITTEN: dict[str, Loss] = {
    "difference": lambda model, x, y: ((model(x) - F.one_hot(y, 4)) ** 2).mean(),
    "difference of an activation": lambda model, x, y: (F.one_hot(y, 4) - model(x).sigmoid()).abs().mean(),
    "product": lambda model, x, y: -(F.one_hot(y, 4) * log_p(model, x)).sum(1).mean(),
    "index": lambda model, x, y: -log_p(model, x)[range(len(y)), y].mean(),
    "gather": lambda model, x, y: -log_p(model, x).gather(1, y[:, None]).mean(),
    "loss of each sample": lambda model, x, y: F.cross_entropy(model(x), y, reduction="none").mean(),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_targets_of_losses_that_are_written_by_hand(name: str) -> None:
    loss = WRITTEN[name]
    assert pairs(loss) == [("x", "y", True)]
    assert pairs(lambda model, x, y: loss(model, x, y.roll(1, 0))) == [("x", "y", False)]


def test_no_hook_of_the_program_restores_a_target() -> None:
    restored: list[int] = []

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = model(x)
        with torch.autograd.graph.saved_tensors_hooks(lambda it: it, lambda it: (restored.append(1), it)[1]):
            return ((out - F.one_hot(y, 4)) ** 2).mean()

    train(loss)
    assert len(restored) == len(range(0, 160, ROWS))
