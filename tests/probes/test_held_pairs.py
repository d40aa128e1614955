"""Samples and labels that a data set holds, next to the arrays that they were taken from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from truestep.events import RowsPaired
from truestep.testing import capture_events

ROWS = 120


class Scaled(Dataset[Any]):
    """Images that are scaled when they are read."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.images[index]).float() / 255, int(self.labels[index])


def trained(data: Any) -> list[RowsPaired]:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for x, y in DataLoader(data, 20, shuffle=True):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, RowsPaired) and event.stored is not None]


def of_images(how: str) -> list[RowsPaired]:
    """Return the events of a part of some images, whose labels are chosen in one of several ways."""
    random = np.random.default_rng(0)
    images = random.integers(0, 255, (ROWS, 6, 6)).astype(np.uint8)
    labels = random.integers(0, 5, ROWS)
    index = random.permutation(ROWS)[:80]
    chosen = {
        "own": labels[index],
        "whole": labels,
        "first": labels[:80],
        "shuffled": random.permutation(labels[index]),
        "made": labels[index] // 2,
        "noisy": np.where(random.random(80) < 0.3, random.integers(0, 5, 80), labels[index]),
    }
    data = Scaled(images[index], chosen.pop(how))
    del chosen
    return trained(data)


@pytest.mark.parametrize(("how", "equal"), [("own", True), ("whole", False), ("first", False)])
def test_labels_of_the_same_rows_as_the_samples_and_of_others(how: str, equal: bool) -> None:
    (event,) = of_images(how)
    assert (event.table, event.other.rpartition(".")[2], event.equal) == ("images", "labels", equal)


@pytest.mark.parametrize("how", ["made", "noisy", "shuffled"])
def test_labels_that_are_in_no_column_say_nothing(how: str) -> None:
    assert of_images(how) == []


def beside_other_rows(raw: bool) -> list[RowsPaired]:
    """Return the events of the first rows of shuffled tables; a variable can hold the samples as they were before."""
    torch.manual_seed(0)
    x, y = torch.randn(ROWS, 36), torch.randint(0, 5, (ROWS,))
    order = torch.randperm(ROWS)
    shuffled, y = x[order], y[order]
    if not raw:
        x = shuffled
    return trained(TensorDataset(shuffled[:80], y[:80]))


@pytest.mark.parametrize("raw", [True, False])
def test_a_table_in_the_order_of_the_labels_is_theirs(raw: bool) -> None:
    assert [event.equal for event in beside_other_rows(raw)] == [True]


def test_arrays_that_no_variable_holds_say_nothing() -> None:
    assert trained(TensorDataset(torch.randn(ROWS, 36), torch.randint(0, 5, (ROWS,)))) == []
