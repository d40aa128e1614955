"""Branches for a new best figure, and the state dicts that are taken in them."""

import runpy
from pathlib import Path

import pytest

from truestep.events import WeightsKept
from truestep.probes.context.guards import guard_at, guarded_losses
from truestep.testing import capture_events


@pytest.mark.parametrize(
    ("test", "name", "loss", "greater"),
    [
        ("val_loss < best_loss", "val_loss", True, False),
        ("best_loss <= val_loss", "val_loss", True, True),
        ("best_loss is None or val_loss > best_loss - 1e-3", "val_loss", True, True),
        ("not best_loss or loss < best_loss", "loss", True, False),
        ("acc >= best_loss", "acc", False, True),
        ("score < best_loss", "score", False, False),
        ("loss_accuracy < best_loss", "loss_accuracy", False, False),
    ],
)
def test_branches_with_their_direction(tmp_path: Path, test: str, name: str, loss: bool, greater: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"if {test}:\n    if x:\n        save()\n    best_loss = 1\nelse:\n    waited += 1\n")
    guard = guard_at(str(path), 3)
    assert guard is not None
    assert (guard.name, guard.loss, guard.greater, guard.site.line) == (name, loss, greater, 1)
    assert guard.share is (name == "acc")
    assert guard_at(str(path), 6) is None
    assert guarded_losses(str(path)) == (frozenset({name}) if loss else frozenset())


@pytest.mark.parametrize(
    "test",
    [
        "val_loss < limit", "best_loss < min_loss", "val_loss < best_loss < 1",
        "val_loss != best_loss", "val_loss < best_loss and acc > best_acc", "self.loss < best_loss",
        "val_loss", "val_loss < best_loss or acc > best_acc",
    ],
)  # fmt: skip
def test_other_conditions(tmp_path: Path, test: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"if {test}:\n    save()\n    best_loss = 1\n")
    assert guard_at(str(path), 2) is None


@pytest.mark.parametrize(
    ("code", "loss"),
    [
        ("val = mse(net(x), y).item()", True),
        ("val = float(F.cross_entropy(net(x), y))", True),
        ("val = 0.0\nfor x, y in loader:\n    val += criterion(net(x), y).item() * len(x)\nval /= len(data)", True),
        ("val = loss_fn(net(x), y).item()", True),
        ("val = neg_mse(net(x), y).item()", False),
        ("val = psnr_from_mse(net(x), y)", False),
        ("val = mse_reduction(net(x), y)", False),
        ("val = -mse(net(x), y).item()", False),
        ("val = evaluate(net)", False),
        ("val = mse(net(x), y).item()\nval = 1 - val", False),
        ("val = 0.0", False),
    ],
)
def test_a_variable_with_results_of_losses_alone_is_a_loss(tmp_path: Path, code: str, loss: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"{code}\nif val > best:\n    save()\n    best = val\n")
    guard = guard_at(str(path), len(code.splitlines()) + 2)
    assert guard is not None
    assert guard.loss is loss


def test_a_branch_that_keeps_the_best_figure_as_it_is_is_none(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("if val_loss > best_loss:\n    save()\n    waited = best_loss\n")
    assert guard_at(str(path), 2) is None


def test_the_best_figure_may_be_assigned_among_others(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("if val_loss > best_loss: best_loss, best_model = val_loss, save()\n")
    guard = guard_at(str(path), 1)
    assert guard is not None
    assert guard.greater
    path = tmp_path / "other.py"
    path.write_text("if val_loss > best_loss: waited, model = best_loss, save()\n")
    assert guard_at(str(path), 1) is None


def test_the_other_branch_has_the_other_direction(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text('if val_loss > best["loss"]:\n    waited += 1\nelse:\n    best["loss"] = val_loss\n    save()\n')
    guard = guard_at(str(path), 5)
    assert guard is not None
    assert not guard.greater


PROGRAM = """
import copy; import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2)
best_loss = 0.0

def keep():
    return COPIED

def update(val_loss):
    global best_loss
    if val_loss > best_loss:
        best_loss = val_loss
        keep()

for step in range(6):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        now = (model(x) - 1).square().mean().item()
    update(now)
first = model.state_dict()
"""


@pytest.mark.parametrize(
    "copied",
    [
        "{name: value.clone() for name, value in model.state_dict().items()}",
        "copy.deepcopy(model)",
        "copy.deepcopy(torch.nn.Sequential(torch.nn.Sequential(model)))",
    ],
)
def test_weights_are_kept_by_a_function_that_the_branch_calls(tmp_path: Path, copied: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.replace("COPIED", copied))
    with capture_events() as events:
        held = runpy.run_path(str(path))
    kept = [event for event in events if isinstance(event, WeightsKept)]
    assert {(one.name, one.loss, one.greater, one.site.line) for one in kept if one.site} == {
        ("val_loss", True, True, 14)
    }
    assert {one.taken.line for one in kept if one.taken} == {10}
    assert len(kept) == len({one.value for one in kept})
    assert max(one.value for one in kept) == held["best_loss"]


@pytest.mark.parametrize(
    ("named", "beside"),
    [
        (("train_loss", "best_loss", "val_loss"), "val_loss"),
        (("train_acc", "valid_acc_max", "valid_acc"), "valid_acc"),
        (("train_loss", "best_train_loss", "val_loss"), ""),
        (("loss", "best_loss", "val_loss"), ""),
        (("train_loss", "best_loss", "test_loss"), ""),
        (("train_loss", "best_loss", "val_acc"), ""),
        (("train_loss", "best_loss", "val_loss_min"), ""),
    ],
)
def test_a_figure_of_the_training_is_compared_beside_one_of_a_validation(tmp_path: Path, named, beside) -> None:
    figure, best, other = named
    path = tmp_path / "train.py"
    path.write_text(BY_NAME.replace("FIGURE", figure).replace("BEST", best).replace("OTHER", other))
    with capture_events() as events:
        runpy.run_path(str(path))
    kept = [event for event in events if isinstance(event, WeightsKept)]
    assert {one.beside for one in kept} == {beside}
    assert len(kept) == 3


BY_NAME = """
import torch

net = torch.nn.Linear(2, 1)
sgd = torch.optim.SGD(net.parameters(), 0.1)
BEST = 9.0
for epoch in range(3):
    net(torch.ones(4, 2)).sum().backward()
    sgd.step()
    FIGURE, OTHER = 3.0 - epoch, 5.0
    if FIGURE < BEST:
        BEST = FIGURE
        kept = net.state_dict()
"""
