"""Figures of evaluations: quotients in the source and their values; figures that are read beside comparisons."""

import ast

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import EvaluationLossRead, FigureRead
from truestep.probes.evaluation.figures import _is_figure, _is_loss
from truestep.probes.evaluation.quotients import quotients_of, value
from truestep.testing import capture_events

SOURCE = '''
def report(hits, n, loader):
    """Text."""
    print(f"epoch {n}: accuracy {100 * hits / n:.1f} %", hits / len(loader))
    log("loss", hits / n)

def other(a):
    return a / 2

share = right / len(data.dataset)
'''
LOADER = DataLoader(TensorDataset(torch.zeros(10, 1)), batch_size=4)
NAMES = {"hits": 6, "n": torch.tensor(8), "loader": LOADER, "data": LOADER, "right": 4.0, "text": "a", "zero": 0}


def test_quotients_of_functions_and_modules_have_the_text_before_them(tmp_path):
    path = tmp_path / "report.py"
    path.write_text(SOURCE)
    of_function = {(one.text, one.label, one.place.line) for one in quotients_of(str(path), 2)}
    assert of_function == {
        ("100 * hits / n", ": accuracy", 4),
        ("hits / len(loader)", "", 4),
        ("hits / n", "loss", 5),
    }
    assert [(one.text, one.place.line) for one in quotients_of(str(path))] == [("right / len(data.dataset)", 10)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100 * hits / n", 75.0),
        ("hits / len(loader)", 2.0),
        ("right / len(data.dataset)", 0.4),
        ("(hits + right) / n.item()", 1.25),
        ("hits / zero", None),
        ("hits / missing", None),
        ("hits / text", None),
        ("hits / len(text)", None),
        ("hits / len(hits.dataset)", None),
        ("hits / compute()", None),
    ],
)
def test_only_arithmetic_of_held_numbers_has_a_value(text, expected):
    node = ast.parse(text, mode="eval").body
    assert value(torch, node, NAMES) == expected


@pytest.mark.parametrize("name", ["accuracy", "val_acc", "test_iou", "F1", "top1_accuracy"])
def test_names_of_shares(name):
    assert _is_figure(name)


@pytest.mark.parametrize("name", ["dice_loss", "acc_sum", "correct", "accelerator", "accuracy_fn", "total_recall"])
def test_other_names(name):
    assert not _is_figure(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("val_loss", True), ("test_mse", True), ("loss_eval", True), ("VALID_LOSS", True), ("loss", False),
        ("best_val_loss", False), ("val_loss_sum", False), ("val_accuracy", False), ("test_loss_fn", False),
    ],
)  # fmt: skip
def test_names_of_losses_of_evaluations(name, expected):
    assert _is_loss(name) is expected


def validated():
    """Train with an evaluation after each step; return the losses that were read, and those that were computed."""
    torch.manual_seed(0)
    x, y = torch.randn(60, 4), torch.randn(60, 1)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shown = []
    with capture_events() as events:
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                val_loss = nn.functional.mse_loss(model(x[:30]), y[:30]).item()
            shown.append(val_loss)
    return [event for event in events if isinstance(event, EvaluationLossRead)], shown


def test_losses_of_evaluations_are_read_after_each():
    read, shown = validated()
    assert {one.name for one in read} == {"val_loss"}
    assert len(read) >= 4
    assert [one.value for one in read] == pytest.approx(shown[: len(read)], rel=1e-5)


def figures(evaluate, *, several=False):
    """Train for two epochs with an evaluation after each; return the figures that were read."""
    torch.manual_seed(0)
    x, y = torch.randn(60, 4), torch.randint(0, 3, (60,))
    loader = DataLoader(TensorDataset(x, y), batch_size=25)
    shown = []
    models = [nn.Linear(4, 3) for _ in range(1 + several)]
    with capture_events() as events:
        for model in (*models, models[-1]):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            for a, b in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(a), b).backward()
                optimizer.step()
            accuracy = evaluate(model, loader)
            shown.append(accuracy)  # an assert of pytest would read all locals
    return [event for event in events if isinstance(event, FigureRead)]


def counted(model, loader):
    hits = 0
    with torch.no_grad():
        for a, b in loader:
            hits += (model(a).argmax(1) == b).sum().item()
    return hits / 60


def counted_twice(model, loader):
    hits = 0
    with torch.no_grad():
        for a, b in loader:
            chosen = model(a).argmax(1)
            hits += (chosen == b).sum().item() + (chosen != b).sum().item()
    return hits / 60


def test_a_figure_is_read_with_the_comparisons_of_its_evaluation():
    found = [one for one in figures(counted) if one.name == "accuracy"]
    assert [one.evaluations for one in found][:1] == [1]
    for one in found:
        assert one.value == one.equal / 60
        assert (one.samples, one.batches, one.last[1]) == (60, 3, 10)
        assert one.place is not None
        assert one.place.path == __file__


def test_evaluations_of_another_model_begin_anew():
    assert {one.evaluations for one in figures(counted, several=True) if one.name == "accuracy"} == {1}


def test_several_comparisons_leave_the_share_unknown():
    assert {one.samples for one in figures(counted_twice) if one.name == "accuracy"} == {0}
