"""Numbers that a program chooses by samples of its test, in a run."""

import runpy

import pytest

from truestep.events import NumberChosen
from truestep.testing import capture_events

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 4)
y = (x[:, 0] + 0.5 * torch.randn(300) > 0).float()
x_train, x_val, x_test = x[:100], x[100:200], x[200:]
y_train, y_val, y_test = y[:100], y[100:200], y[200:]
model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), 0.1)


@torch.no_grad()
def scores(x):
    model.eval()
    return torch.sigmoid(model(x))


def best_threshold(y, p):
    grid = torch.linspace(0.1, 0.9, 17)
    return float(grid[torch.stack([((p > t) == (y > 0)).float().mean() for t in grid]).argmax()])


def main():
    for _ in range(5):
        model.train()
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x_train), y_train).backward()
        optimizer.step()
    CHOICE
    p = scores(x_test)
    print(((p > thr) == (y_test > 0)).float().mean(), x_val.shape)


main()
"""


def chosen(tmp_path, choice, program=PROGRAM):
    path = tmp_path / "program.py"
    path.write_text(program.replace("CHOICE", choice))
    with capture_events() as events:
        runpy.run_path(str(path), run_name="__main__")
    return [(one.name, one.by, one.site.line) for one in events if isinstance(one, NumberChosen)]


def test_a_threshold_of_the_test_is_read(tmp_path):
    line = 1 + PROGRAM.splitlines().index("    CHOICE")
    found = chosen(tmp_path, "thr = best_threshold(y_test, scores(x_test))")
    assert found == [("thr", "y_test", line)]


@pytest.mark.parametrize(
    "choice",
    ["thr = best_threshold(y_val, scores(x_val))", "thr = 0.5",
     "thr = 0.5\n    if thr > 1:\n        thr = best_threshold(y_test, scores(x_test))"],
    ids=["validation", "constant", "branch"],
)  # fmt: skip
def test_other_thresholds_are_not(tmp_path, choice):
    assert chosen(tmp_path, choice) == []


def test_parts_that_are_one_object_are_not(tmp_path):
    program = PROGRAM.replace(
        "def main():", "def main():\n    x_test = x_val = x[100:200]\n    y_test = y_val = y[100:200]"
    )
    assert chosen(tmp_path, "thr = best_threshold(y_test, scores(x_test))", program) == []
