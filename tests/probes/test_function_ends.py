"""Figures that a function computes behind the loop of an evaluation, and that no variable holds after it."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import ClassFigureRead, EvaluationLossRead, FigureRead, LossFigureRead
from truestep.probes.figures import function_ends
from truestep.rules._class_figures import judged
from truestep.rules._loss_figures import mistaken
from truestep.testing import capture_events

X = torch.randn(150, 5, generator=torch.Generator().manual_seed(0))
Y = (X @ torch.randn(5, 3, generator=torch.Generator().manual_seed(1))).argmax(1)
LOADER = DataLoader(TensorDataset(X, Y), batch_size=40)
LINES = []


def read(evaluate, *kinds):
    """Train with an evaluation after each epoch, of whose figures nothing is kept; return the events of some kinds."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with capture_events() as events:
        for epoch in range(3):
            for x, y in [batch for _ in range(6) for batch in LOADER]:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            LINES.append(f"epoch {epoch}: recall {evaluate(model)}")
    return [event for event in events if isinstance(event, kinds)]


def table(model):
    counts = torch.zeros(3, 3)
    with torch.no_grad():
        for x, y in LOADER:
            for t, p in zip(y, model(x).argmax(1), strict=True):
                counts[t, p] += 1
    return counts


def by_name(model):
    counts = torch.zeros(3, 3)
    with torch.no_grad():
        for x, y in LOADER:
            for t, p in zip(y, model(x).argmax(1), strict=True):
                counts[t, p] += 1
    recall = (counts.diag() / counts.sum(0)).mean().item()
    return f"{recall:.3f}"


def by_key(model):
    counts = np.zeros((3, 3))
    with torch.no_grad():
        for x, y in LOADER:
            np.add.at(counts, (y.numpy(), model(x).argmax(1).numpy()), 1)
    per_class = np.diag(counts) / counts.sum(axis=0)
    return {"samples": len(X), "recall": np.mean(per_class)}


def by_the_text_before_the_call(model):
    predicted, wanted = [], []
    with torch.no_grad():
        for x, y in LOADER:
            predicted.append(model(x).argmax(1))
            wanted.append(y)
    predicted, wanted = torch.cat(predicted), torch.cat(wanted)
    hits = torch.bincount(wanted[predicted == wanted], minlength=3)
    return (hits / torch.bincount(predicted, minlength=3)).mean()


def macro_recall(model):
    hits, asked = torch.zeros(3), torch.zeros(3)
    with torch.no_grad():
        for x, y in LOADER:
            chosen = model(x).argmax(1)
            hits += torch.bincount(y[chosen == y], minlength=3)
            asked += torch.bincount(chosen, minlength=3)
    hits /= asked
    return hits.mean()


def by_a_library(model):
    metrics = pytest.importorskip("sklearn.metrics")
    predicted, wanted = [], []
    with torch.no_grad():
        for x, y in LOADER:
            predicted += model(x).argmax(1).tolist()
            wanted += y.tolist()
    recall_score = metrics.recall_score
    recall = recall_score(predicted, wanted, average="macro")
    return str(recall)


def without_a_loop(model):
    with torch.no_grad():
        predicted = model(X).argmax(1)
    hits = torch.bincount(Y[predicted == Y], minlength=3)
    recall = (hits / torch.bincount(predicted, minlength=3)).mean()
    return recall.item()


WRONG = [without_a_loop, by_name, by_key, by_the_text_before_the_call, macro_recall, by_a_library]


@pytest.mark.parametrize("evaluate", WRONG, ids=lambda one: one.__name__)
def test_a_figure_of_a_function_that_has_ended_is_read(evaluate):
    events = read(evaluate, ClassFigureRead)
    assert len(events) == 3
    for event in events:
        judgement = judged(event.claim, event.values, event.counts)
        assert (event.claim, judgement.what) == ("recall", "the precision")
        assert event.place.line > evaluate.__code__.co_firstlineno


def of_other_names(model):
    counts = table(model)
    return (counts.sum(1) / counts.sum()).tolist()


def by_unknown_functions(model):
    counts = table(model)
    recall = np.trapezoid(counts[0].numpy()) if hasattr(np, "trapezoid") else 0.0
    return f"{recall}"


def rounded(model):
    counts = torch.zeros(3, 3)
    with torch.no_grad():
        for x, y in LOADER:
            for t, p in zip(y, model(x).argmax(1), strict=True):
                counts[t, p] += 1
    return round((counts.diag() / counts.sum(1)).mean().item(), 4)


@pytest.mark.parametrize("evaluate", [of_other_names, by_unknown_functions, rounded], ids=lambda one: one.__name__)
def test_a_right_figure_and_an_unknown_one_have_no_mistake(evaluate):
    events = read(evaluate, ClassFigureRead)
    assert not any(judged(one.claim, one.values, one.counts).what for one in events)


def with_a_perplexity(model):
    total = 0.0
    with torch.no_grad():
        for x, y in LOADER:
            total += F.cross_entropy(model(x), y, reduction="sum").item()
    perplexity = 2 ** (total / len(X))
    return f"{perplexity:.1f}"


def test_a_perplexity_of_a_function_that_has_ended_is_read():
    events = read(with_a_perplexity, LossFigureRead)
    assert [mistaken(one) for one in events] == ["a power of 2, and its loss is in nats"] * 3


class Evaluator:
    """Counts that no evaluation clears."""

    def __init__(self):
        self.correct = self.total = 0

    def __call__(self, model):
        for x, y in LOADER:
            with torch.no_grad():
                equal = model(x).argmax(1) == y
            self.correct += equal.sum().item()
            self.total += len(y)
        accuracy = self.correct / len(X)
        return f"{accuracy:.3f}"


def test_an_accuracy_is_read_with_the_comparisons_of_its_evaluation():
    events = [one for one in read(Evaluator(), FigureRead) if one.name == "accuracy"]
    assert len(events) == 3
    assert [one.value for one in events] == pytest.approx([one.every[0] / len(X) for one in events])


def test_the_loss_of_an_evaluation_is_read():
    def evaluate(model):
        val_loss = 0.0
        for x, y in LOADER:
            with torch.no_grad():
                val_loss += F.cross_entropy(model(x), y).item()
        val_loss /= len(LOADER)
        return f"{val_loss:.3f}"

    events = read(evaluate, EvaluationLossRead)
    assert [one.name for one in events] == ["val_loss"] * 3
    assert all(f"recall {one.value:.3f}" in line for one, line in zip(events, LINES[-3:], strict=True))


def test_the_number_of_ends_that_are_read_is_limited(monkeypatch):
    monkeypatch.setattr(function_ends, "_MOST", 1)
    assert len(read(by_name, ClassFigureRead)) == 1
