"""Figures by their names: claims of names, counts of classes, losses in nats, figures of a test, choices of weights."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import ChoiceRead, ClassFigureRead, EvaluationRan, LossFigureRead
from truestep.probes.figures.claims import claim_of, computed, printed
from truestep.probes.figures.counts import Counts
from truestep.probes.figures.of_tests import figure_of_test
from truestep.testing import capture_events

X = torch.randn(120, 5, generator=torch.Generator().manual_seed(0))
Y = (X @ torch.randn(5, 3, generator=torch.Generator().manual_seed(1))).argmax(1)
LOADER = DataLoader(TensorDataset(X, Y), batch_size=50)


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("val_recall", "recall"), ("sensitivity", "recall"), ("macro F1", "f1"), ("mean IoU: ", "iou"),
        ("balanced_accuracy", "balanced"), ("specificity", "specificity"), ("ppl", "perplexity"),
        ("bits_per_char", "bits"), ("best_f1", ""), ("recall_at_5", ""), ("recall@5", ""), ("dice_loss", ""),
        ("average_precision", ""), ("precision / recall", ""), ("precision_threshold", ""), ("accuracy", ""),
    ],
)  # fmt: skip
def test_names_claim_figures(name, claim):
    assert claim_of(name) == claim


def test_printed_expressions_have_the_claim_of_the_text_before_them(tmp_path):
    path = tmp_path / "show.py"
    path.write_text(
        'print(f"{n}: recall {tp / (tp + fn):.2f} of {n} precision {precision} loss {loss}")\n'
        'log("ppl", math.exp(loss), "f1/recall", a)\n'
        "def other():\n    print(f'recall {a}')\n"
    )
    found = {(one.text, one.claim) for one in printed(str(path), 0)}
    assert found == {("tp / (tp + fn)", "recall"), ("math.exp(loss)", "perplexity")}
    assert [one.text for one in printed(str(path), 3)] == ["a"]


def test_the_line_that_computes_a_figure(tmp_path):
    path = tmp_path / "measure.py"
    path.write_text(
        "def f1_score(tp, fp, fn):\n    whole = 2 * tp + fp + fn\n    return 2 * tp / whole\n"
        "def evaluate():\n    recalls = hits / counts\n    return recalls.mean()\n"
        "balanced = evaluate()\nval_f1 = f1_score(1, 2, 3)\nmetrics = {'iou': a, 'precision': b / c}\nppl = 2\n"
    )
    lines = [
        computed(str(path), claim, name, "evaluate").line
        for claim, name in (
            ("f1", "val_f1"), ("balanced", "balanced"), ("precision", "metrics['precision']"), ("perplexity", "ppl"),
        )
    ]  # fmt: skip
    assert lines == [3, 5, 9, 10]


# --- counts of classes -----------------------------------------------------------------------------------------------


def table(predicted, target, classes):
    """Return true positives, false positives and false negatives of each class."""
    return tuple(
        (
            int(((predicted == c) & (target == c)).sum()),
            int(((predicted == c) & (target != c)).sum()),
            int(((predicted != c) & (target == c)).sum()),
        )
        for c in range(classes)
    )


def counted(frame_of, *scores):
    counts = Counts(torch)
    for one in scores:
        counts.called(1, None, frame_of(one), one)
    return counts.groups()


class Frame:
    """A frame with variables, as far as they are read."""

    def __init__(self, **names):
        self.f_globals = names
        self.f_code = compile("\n".join(names), "nowhere.py", "exec")


def test_classes_are_counted_by_the_variable_with_the_targets():
    scores = torch.randn(40, 3)
    labels = torch.arange(40) % 3
    (group,) = counted(lambda one: Frame(labels=labels, other=torch.zeros(3), text="a"), scores)
    assert group.samples == 40
    assert group.classes == table(scores.argmax(1), labels, 3)


@pytest.mark.parametrize(
    "held",
    [lambda y: y.numpy(), lambda y: {"labels": y}, lambda y: [None, y], lambda y: y.unsqueeze(1), lambda y: y.int()],
    ids=["array", "dict", "list", "column", "int32"],
)
def test_targets_in_other_forms(held):
    scores, labels = torch.randn(30, 4), torch.arange(30) % 4
    (group,) = counted(lambda one: Frame(batch=held(labels)), scores)
    assert group.classes == table(scores.argmax(1), labels, 4)


def test_pixels_padding_and_single_scores():
    scores, masks = torch.randn(4, 3, 5, 5), torch.randint(0, 3, (4, 5, 5))
    masks[0, :, 0] = 255
    (group,) = counted(lambda one: Frame(masks=masks), scores)
    assert group.samples == 95
    assert group.classes == table(scores.argmax(1)[masks < 255], masks[masks < 255], 3)
    logits, wanted = torch.randn(30, 1) * 3, (torch.arange(30) % 2).float()
    (group,) = counted(lambda one: Frame(wanted=wanted), logits)
    assert group.classes == table((logits.squeeze(1) > 0).long(), wanted.long(), 2)
    (group,) = counted(lambda one: Frame(wanted=wanted), logits.sigmoid())
    assert group.classes == table((logits.squeeze(1) > 0).long(), wanted.long(), 2)


def test_several_labels_at_once_are_counted_for_each():
    logits, wanted = torch.randn(30, 4), torch.randint(0, 2, (30, 4)).float()
    (group,) = counted(lambda one: Frame(wanted=wanted), logits)
    right = tuple(table((logits > 0).long()[:, c], wanted[:, c].long(), 2)[1] for c in range(4))
    assert (group.samples, group.classes) == (30, right)


def test_other_variables_are_no_targets():
    frame = Frame(scores=torch.randn(40), weights=torch.rand(40), short=torch.arange(39), ids=torch.arange(40) + 9)
    assert counted(lambda one: frame, torch.randn(40, 3)) == ()


def test_evaluations_one_after_the_other_are_apart_and_together():
    parts = [torch.randn(20, 2), torch.randn(7, 2), torch.randn(20, 2)]
    groups = counted(lambda one: Frame(labels=torch.arange(len(one)) % 2), *parts)
    assert [group.samples for group in groups] == [27, 20, 47]


# --- figures after an evaluation -------------------------------------------------------------------------------------


def read(evaluate, kind, epochs=3):
    """Train with an evaluation after each epoch; return the events of a kind."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    with capture_events() as events:
        for _ in range(epochs):
            for x, y in LOADER:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            metrics = evaluate(model)
        del metrics
    return [event for event in events if isinstance(event, kind)]


def by_a_table(model):
    confusion = np.zeros((3, 3), int)
    with torch.no_grad():
        for x, y in LOADER:
            for t, p in zip(y.tolist(), model(x).argmax(1).tolist(), strict=True):
                confusion[t, p] += 1
    return {"recall": np.diag(confusion) / confusion.sum(1), "epoch": 1}


def by_rows(model):
    hits, asked = torch.zeros(3), torch.bincount(Y, minlength=3)
    for start in range(0, 120, 40):
        with torch.no_grad():
            chosen = model(X[start : start + 40]).argmax(1)
        wanted = Y[start : start + 40]
        hits += torch.bincount(wanted[chosen == wanted], minlength=3)
    return {"recall": hits / asked}


@pytest.mark.parametrize("evaluate", [by_a_table, by_rows], ids=lambda one: one.__name__)
def test_a_figure_of_classes_is_read_with_its_counts(evaluate):
    events = read(evaluate, ClassFigureRead)
    assert {one.claim for one in events} == {"recall"}
    for event in events:
        assert event.name in ("metrics['recall']", "recall")  # the latter of the last one, whose dict has gone
        ratios = [[tp / (tp + fn) for tp, _, fn in classes] for _, classes in event.counts]
        assert any(one == pytest.approx(event.values, abs=1e-6) for one in ratios)


def perplexities(model):
    total = 0.0
    with torch.no_grad():
        for x, y in LOADER:
            total += F.cross_entropy(model(x), y, reduction="sum").item()
    return {"ppl": math.exp(total / 120)}


def test_a_perplexity_is_read_with_the_losses_in_nats():
    events = read(perplexities, LossFigureRead)
    assert events
    for event in events:
        assert math.log(event.values[0]) == pytest.approx(event.losses[0][0], rel=1e-6)


def test_losses_with_gradients_and_other_losses_are_no_evaluation():
    def evaluate(model):
        loss = F.cross_entropy(model(X), Y)
        with torch.no_grad():
            return {"ppl": math.exp(loss.item()), "error": F.mse_loss(model(X)[:, 0], X[:, 0]).item()}

    assert read(evaluate, LossFigureRead) == []


# --- figures of a test -----------------------------------------------------------------------------------------------

PROGRAM = """
def main():
    for epoch in range(3):
        acc = evaluate(model, val_loader)
        print(f"test {acc}")
    acc, f1 = evaluate(model, val_loader)
    loss = 2 * f1
    print(f"test accuracy {acc:.3f}")

result = evaluate(model, val_loader)
print("val accuracy", result)
score = evaluate(model, test_loader)
print(f"test {score}")
test_error = 1 - evaluate(model, val_loader)
print(f"epoch {epoch} test loss {evaluate(model, val_loader):.3f}")
with torch.no_grad():
    out = model(x[train])
mae = (out - y[test]).abs().mean()
print("test mae", mae)
print("test", evaluate(model, val_loader))
print("test", evaluate(model, loaders["test"]))
logging.info("test %s", evaluate(model, "test"))
"""


def test_the_statements_around_an_evaluation_name_a_test(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    found = {line: test.name for line in range(1, 25) if (test := figure_of_test(str(path), line)) is not None}
    assert found == {6: "test accuracy", 14: "test_error", 15: "epoch test loss", 20: "test"}


# --- choices ---------------------------------------------------------------------------------------------------------


class Keeper:
    def __init__(self):
        self.best = float("inf")
        self.weights = {}

    def update(self, value, model):
        if value < self.best:
            self.best = value
            self.weights = copy.deepcopy(model.state_dict())


def choices(figure, *, held_out=True):
    """Train with weights that are kept by a figure of the epoch; return the choices that were read."""
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    keeper, shown = Keeper(), []
    with capture_events() as events:
        for epoch in range(5):
            for x, y in LOADER:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                train_loss = loss.item()
            with torch.no_grad():
                eval_figure = F.cross_entropy(model(X[::2] + 0.01 * epoch), Y[::2]).item()
            if held_out:
                val_loss = eval_figure
                shown.append(val_loss)
            keeper.update(figure(train_loss, eval_figure), model)
    return [(one.name, one.by, one.beside) for one in events if isinstance(one, ChoiceRead)]


def test_a_choice_by_the_loss_of_the_training_is_read():
    assert choices(lambda train, held: train) == [("self.best", "train_loss", "val_loss")]


@pytest.mark.parametrize(
    "figure",
    [lambda train, held: held, lambda train, held: train + held],
    ids=["by the validation", "by a sum"],
)
def test_other_choices_are_not(figure):
    assert choices(figure) == []


def test_a_choice_without_a_loss_of_a_validation_is_not():
    assert choices(lambda train, held: train, held_out=False) == []


def test_functions_that_call_an_evaluation_are_named_once():
    net = nn.Linear(5, 3)

    def evaluate():
        net.eval()
        with torch.no_grad():
            return [net(x).argmax(1) for x, _ in LOADER]

    with capture_events() as events:
        for _ in range(3):
            evaluate()
    ran = {(event.path, event.first) for event in events if isinstance(event, EvaluationRan)}
    first = evaluate.__code__.co_firstlineno
    assert ran == {(__file__, first), (__file__, first - 2 - 1)}
    assert sum(isinstance(event, EvaluationRan) for event in events) == len(ran)
