"""Classes of the columns that targets are taken from, in training and in evaluation."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

from truestep import events as ev
from truestep.testing import capture_events


def columns(run):
    with capture_events() as events:
        run()
    read = {(event.training, event.table, event.classes) for event in events if isinstance(event, ev.LabelsRead)}
    return sorted(read, key=lambda one: (not one[0], one[1]))


def train(model, x, y, count):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(count):
        index = torch.randperm(len(x))[:16]
        loss = F.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_slices():
    y = torch.arange(4).repeat_interleave(40)
    x, model = torch.randn(160, 5), nn.Linear(5, 4)
    x_train, y_train, x_test, y_test = x[:120], y[:120], x[120:], y[120:]
    train(model, x_train, y_train, 5)
    with torch.no_grad():
        (model(x_test).argmax(1) == y_test).float().mean()


def by_subsets():
    y = torch.arange(4).repeat_interleave(40)
    data = TensorDataset(torch.randn(160, 5), y)
    first, last = Subset(data, range(120)), Subset(data, range(120, 160))
    model = nn.Linear(5, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in DataLoader(first, batch_size=24, shuffle=True):
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for inputs, targets in DataLoader(last, batch_size=20):
            (model(inputs).argmax(1) == targets).sum()


THREE, LAST = ((0, 40), (1, 40), (2, 40)), ((3, 40),)


def test_columns_of_slices_are_those_of_the_slice():
    assert columns(by_slices) == [(True, "y", THREE), (False, "y_test", LAST)]


def test_columns_of_subsets_have_the_rows_of_the_subset():
    assert [classes for _, _, classes in columns(by_subsets)] == [THREE, LAST]


def continuous_targets():
    x, y, model = torch.randn(160, 5), torch.randn(160), nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        index = torch.randperm(160)[:16]
        loss = F.mse_loss(model(x[index])[:, 0], y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_numbers_are_no_labels():
    assert columns(continuous_targets) == []
