"""Loaders with the name of a test that hold the arrays of another part, and parts that are only stored again."""

import runpy

import pytest

from truestep.events import FigureOfTest, PartUnused
from truestep.testing import capture_events

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(200, 5), torch.randint(0, 3, (200,))
X_tr, X_va, X_te = x[:100], x[100:150], x[150:]
y_tr, y_va, y_te = y[:100], y[100:150], y[150:]
mean = X_tr.mean(0)
X_tr, X_va, X_te = X_tr - mean, X_va - mean, X_te - mean
train_dl = DataLoader(TensorDataset(X_tr, y_tr), batch_size=20, shuffle=True)
val_dl = DataLoader(TensorDataset(X_va, y_va), batch_size=25)
test_dl = DataLoader(TensorDataset(X_te, y_te), batch_size=25)
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)


def score(net, dl):
    net.eval()
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum().item() for x, y in dl) / len(dl.dataset)


for _ in range(2):
    net.train()
    for x, y in train_dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    print(score(net, val_dl))
print(score(net, test_dl))
"""
COPIED = ("test_dl = DataLoader(TensorDataset(X_te, y_te)", "test_dl = DataLoader(TensorDataset(X_va, y_va)")


def found(tmp_path, old, new):
    path = tmp_path / "program.py"
    assert old in PROGRAM
    text = PROGRAM.replace(old, new)
    path.write_text(text.replace("(net, dl)", "(net, test_dl)") if "in test_dl" in text else text)
    with capture_events() as events:
        runpy.run_path(str(path), run_name="__main__")
    tests = [(one.name, one.part) for one in events if isinstance(one, FigureOfTest)]
    return tests, {one.name for one in events if isinstance(one, PartUnused)}


def test_a_loader_of_the_test_with_the_arrays_of_the_validation_is_read(tmp_path):
    assert found(tmp_path, *COPIED) == ([("test_dl", "X_va")], {"X_te", "y_te"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (COPIED[0] + ", batch_size=25)", "test_dl = val_dl"),
        (COPIED[0], "held_dl = test_dl = DataLoader(TensorDataset(X_te, y_te)"),
        (COPIED[0], "test_dl = DataLoader(TensorDataset(x[150:], y_te)"),
        ("x, y in dl) / len(dl.dataset)\n", "x, y in test_dl) / len(test_dl.dataset)\n"),
    ],
    ids=["healthy", "one-loader", "two-names", "a-slice", "a-parameter"],
)
def test_other_loaders_are_not(tmp_path, old, new):
    assert found(tmp_path, old, new)[0] == []
