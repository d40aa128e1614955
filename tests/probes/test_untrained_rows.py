"""Rows of embeddings that evaluations read, and those among them that no step has changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from truestep.events import EmbeddingEvaluated
from truestep.testing import capture_events

SEEN, ROWS = 30, 50


def evaluated(
    make: Callable[[nn.Module], torch.optim.Optimizer], ids: torch.Tensor, table: nn.Embedding | None = None
) -> list[EmbeddingEvaluated]:
    """Return the evaluations after 40 steps on the first rows of a table."""
    torch.manual_seed(0)
    table = nn.Embedding(ROWS, 8) if table is None else table
    model = nn.Sequential(table, nn.Linear(8, 1))
    optimizer = make(model)
    with capture_events() as events:
        for _ in range(40):
            optimizer.zero_grad()
            model(torch.randint(0, SEEN, (64,))).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            model(ids)
    return [event for event in events if isinstance(event, EmbeddingEvaluated)]


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-2)


def decayed(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@pytest.mark.parametrize("make", [adam, decayed, momentum])
def test_rows_that_no_step_has_changed_are_counted(make):
    (event,) = evaluated(make, torch.arange(ROWS))
    assert (event.reads, event.untrained, event.different) == (ROWS, ROWS - SEEN, ROWS - SEEN)
    assert (event.fresh, event.still) == (0.0, 0.0)


def test_rows_of_the_training_are_trained():
    (event,) = evaluated(adam, torch.arange(SEEN).repeat(3))
    assert (event.reads, event.untrained) == (3 * SEEN, 0)


def test_ids_of_padding_do_not_count():
    (event,) = evaluated(adam, torch.full((20,), ROWS - 1), nn.Embedding(ROWS, 8, padding_idx=ROWS - 1))
    assert (event.reads, event.untrained) == (0, 0)


@pytest.mark.parametrize("change", [lambda w: w.mul_(0.5), lambda w: w.add_(0.3)])
def test_vectors_of_another_distribution_are_not_followed(change):
    table = nn.Embedding(ROWS, 8)
    change(table.weight.data)
    assert not evaluated(adam, torch.arange(ROWS), table)


@pytest.mark.program
def test_frozen_rows_are_not_followed():
    table = nn.Embedding(ROWS, 8).requires_grad_(requires_grad=False)
    assert not evaluated(adam, torch.arange(ROWS), table)
