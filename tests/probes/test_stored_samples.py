"""Stored samples that change: by one operation for all rows, at random, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from truestep.events import StoredCompared
from truestep.testing import capture_events


class Samples(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        torch.manual_seed(0)
        self.x = 1 + torch.rand(160, 10)
        self.change = change

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        self.change(row)
        return row, index % 2


def compared(change: Callable[[torch.Tensor], object]) -> list[StoredCompared]:
    """Return the comparisons of a training of eight passes, in which each read of a sample changes it."""
    data, model = Samples(change), nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with capture_events() as events:
        for _ in range(8):
            for x, y in DataLoader(data, batch_size=20, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
    return [one for one in events if isinstance(one, StoredCompared)]


@pytest.mark.parametrize(
    ("change", "factor", "offset"),
    [
        (lambda row: row.div_(4), 0.25, 0.0),
        (lambda row: row.sub_(3), 1.0, -3.0),
        (lambda row: row.mul_(0.5).add_(2), 0.5, 2.0),
    ],
)
def test_one_operation_for_all_rows_is_found(change, factor, offset):
    found = [one for one in compared(change) if one.times]
    assert len(found) == 1
    assert found[0].times >= 2
    assert found[0].factor == pytest.approx(factor, abs=1e-3)
    assert found[0].offset == pytest.approx(offset, abs=1e-2)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.add_(0.1 * torch.randn(10)),
        lambda row: row.mul_(1 + 0.3 * float(torch.rand(()))),
        lambda row: row.mul_(0.9).add_(0.1 * torch.rand(10)),
        lambda row: row.copy_(row.roll(1)),
        lambda row: row.clamp_(1.2, 1.8),
    ],
)
def test_other_changes_are_not_counted(change):
    assert [one for one in compared(change) if one.times] == []


def test_samples_that_stay_are_compared():
    found = compared(lambda row: None)
    assert found
    assert {one.times for one in found} == {0}
