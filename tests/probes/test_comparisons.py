"""Statements after a call in an evaluation are repeated up to the comparison with targets, in functions too."""

import pytest
import torch
from sklearn import preprocessing
from torch import nn

from truestep.events import ResultCompared
from truestep.probes.evaluation.libraries import scaling_of
from truestep.testing import capture_events

X, LABELS = torch.randn(40, 5), torch.arange(40) % 3
Y = LABELS.float()
MANY = torch.randn(200, 5, generator=torch.Generator().manual_seed(3))
CLASSES = MANY[:, :3].argmax(1)
"""Classes that a model can learn."""


def hits(scores, wanted):
    chosen = scores.argmax(1)
    return (chosen == wanted).float().mean()


def broadcast(model):
    return (model(X).argmax(1) == LABELS[:, None]).sum().item()


def in_a_function(model):
    return hits(model(X), LABELS.unsqueeze(1)).item()


def in_a_list(model):
    pairs = zip(X.split(20), LABELS.split(20), strict=True)
    return sum([(model(rows).argmax(1) == wanted[:, None]).sum() for rows, wanted in pairs])


def by_a_caller(model):
    def predict(rows):
        out = model(rows)
        return out.max(dim=1)

    _, chosen = predict(X)
    return chosen.eq(LABELS.view(-1, 1)).sum()


def over_samples(model):
    return (model(X).argmax(0) == LABELS[:3]).sum()


def over_all(model):
    scores = model(X)
    return (torch.argmax(scores) == LABELS).sum()


def over_one(model):
    return (model(X)[:, :1].argmax(1) == LABELS).sum()


def scores(model):
    best = model(X).max(1)[0]
    return (best == LABELS).sum()


def scores_by_name(model):
    return (torch.max(model(X), 1).values == LABELS).sum()


def other_rows(model):
    kept, held = torch.arange(20), torch.arange(20, 40)
    return (model(X[kept]).argmax(1) == LABELS[held]).sum()


def other_slices(model):
    found = 0
    for i in range(0, 40, 20):
        found += (model(X[i : i + 20]).argmax(1) == LABELS[:20]).sum()
    return found


def error_of_a_column(model):
    return (model(X)[:, 0] - Y.unsqueeze(1)).abs().mean()


def half(model):
    return (model(X) > 0.5).sum()


CUT = 0.5


def half_by_name(model):
    return (model(X) > CUT).sum()


def half_by_default(model, cut=0.5):
    return (model(X) > cut).sum()


def searched(model):
    scores = model(X)
    return max((scores > place / 10).sum() for place in range(-20, 20))


def among_several(model):
    scores = model(X)
    for limit in (0.0, 0.5, 1.0):
        print((scores > limit).sum())


def computed(model):
    scores, level = model(X), float(torch.tensor([0.1, 0.4, 0.8]).median())
    return (scores > level).sum()


def sound(model):
    right = 0
    for i in range(0, 40, 20):
        scores = model(X[i : i + 20])
        right += (scores.argmax(dim=1) == LABELS[i : i + 20]).sum().item()
    return right / 40


def view_as(model):
    chosen = model(X).argmax(dim=1, keepdim=True)
    return chosen.eq(LABELS.view_as(chosen)).sum().item()


def top_two(model):
    return (model(X).topk(2).indices == LABELS[:, None]).any(1).float().mean()


def smallest_two(model):
    return (model(MANY).topk(2, largest=False).indices == CLASSES[:, None]).any(1).float().mean()


def smallest(model):
    return (model(MANY).argmin(1) == CLASSES).float().mean()


def smallest_distances(model):
    return ((-model(X)).argmin(1) == LABELS).float().mean()


def over_samples_repeated(model):
    return (model(X).argmax(0).repeat(100)[: len(LABELS)] == LABELS).float().mean()


def pairs(model):
    chosen = model(X).argmax(1)
    return (chosen[:, None] == chosen[None]).sum()


def each_class(model):
    chosen = model(X).argmax(1)
    return (chosen[:, None] == torch.arange(3)).sum(0)


def next_ones(model):
    return (model(X[:-1]).argmax(1) == LABELS[1:]).sum()


def unknown(model):
    def measure(out, wanted):
        yield out == wanted

    return list(measure(model(X).argmax(1), LABELS[:, None]))


def compared(evaluate, scores: bool | None = None) -> list[str]:
    """Return the mistakes of comparisons; with scores or distances, those of a model that has learned its classes."""
    rows, labels, steps = (X, LABELS, 2) if scores is None else (MANY, CLASSES, 200)
    sign = -1 if scores is False else 1
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(sign * model(rows), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluate(model)
    return [event.how for event in events if isinstance(event, ResultCompared)]


@pytest.mark.parametrize(
    ("evaluate", "how"),
    [
        (broadcast, "broadcast"),
        (in_a_function, "broadcast"),
        (in_a_list, "broadcast"),
        (by_a_caller, "broadcast"),
        (error_of_a_column, "broadcast"),
        (over_samples, "samples"),
        (over_samples_repeated, "samples"),
        (over_all, "all"),
        (over_one, "one"),
        (scores, "scores"),
        (scores_by_name, "scores"),
        (other_rows, "rows"),
        (other_slices, "rows"),
        (half, "threshold"),
        (half_by_name, "threshold"),
        (half_by_default, "threshold"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_mistake_is_named(evaluate, how):
    assert how in compared(evaluate)


@pytest.mark.parametrize("evaluate", [searched, among_several, computed], ids=lambda value: value.__name__)
def test_a_threshold_that_is_searched_or_computed_is_quiet(evaluate):
    assert "threshold" not in compared(evaluate)


@pytest.mark.parametrize("evaluate", [smallest, smallest_two], ids=lambda value: value.__name__)
def test_the_smallest_scores_are_a_mistake_if_they_are_right_more_seldom_than_by_chance(evaluate):
    assert compared(evaluate, scores=True) == ["least"]
    assert compared(evaluate, scores=False) == [""]


@pytest.mark.parametrize(
    "evaluate", [smallest_distances, sound, view_as, top_two, each_class, next_ones], ids=lambda value: value.__name__
)
def test_a_sound_comparison_has_no_mistake(evaluate):
    found = compared(evaluate)
    assert found
    assert set(found) == {""}


@pytest.mark.parametrize("evaluate", [pairs, unknown], ids=lambda value: value.__name__)
def test_what_is_no_comparison_with_targets_or_not_repeated_is_not_judged(evaluate):
    assert compared(evaluate) == []


def probabilities_over_samples(model):
    probs = []
    probs.append(model(X).softmax(0)[:, 1])
    return probs


def confidence_over_samples(model):
    margin, _ = torch.softmax(model(X), 0).max(1)
    return margin


def best_of_each_class(model):
    return model(X).softmax(0).max(0)


def weights_of_samples(model):
    weight = model(X).softmax(0)[:, 1]
    return (weight[:, None] * X).sum(0)


def probabilities_of_classes(model):
    probs = model(X).softmax(1)[:, 1]
    return probs, model(X).softmax(1).max(1)


@pytest.mark.parametrize(
    ("evaluate", "found"),
    [
        (probabilities_over_samples, {"shares"}),
        (confidence_over_samples, {"shares"}),
        (best_of_each_class, set()),
        (weights_of_samples, set()),
        (probabilities_of_classes, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_softmax_over_samples_is_a_mistake_if_classes_are_read_in_rows(evaluate, found):
    assert {how for how in compared(evaluate) if how} == found


TABLE, ANSWERS = torch.randn(6, 80), torch.randn(80)
"""Features of 80 samples in columns, and a number for each."""


def fitted(inputs, targets, *, before=True):
    """Return the mistakes of losses over the first samples, and of a loss that is read, on views of the tables."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()
    losses, known, wanted = [], TABLE.t()[:40, :4], ANSWERS[:40].reshape(-1, 1)
    with capture_events() as events:
        for _ in range(4):
            for i in range(0, 40, 10):
                optimizer.zero_grad()
                criterion(model(known[i : i + 10].clone()), wanted[i : i + 10].clone()).backward()
                optimizer.step()
            if before:
                result = model(known)
                losses.append(criterion(result, wanted).item())
            found = model(inputs)
            losses.append(criterion(found, targets).item())
    return {event.how for event in events if isinstance(event, ResultCompared) and event.how}


@pytest.mark.parametrize("shape", [(-1, 1), (40, 1)])
def test_a_loss_on_targets_of_rows_that_belong_to_other_inputs_is_a_mistake(shape):
    assert fitted(TABLE.t()[40:, :4], ANSWERS[:40].reshape(shape)) == {"rows"}


@pytest.mark.parametrize(
    ("inputs", "targets", "before"),
    [
        (TABLE.t()[40:, :4], ANSWERS[40:].reshape(-1, 1), True),
        (TABLE.t()[40:, :4], ANSWERS[:40].reshape(-1, 1), False),
        (TABLE.t()[30:70, :4], ANSWERS[:40].reshape(-1, 1), True),
        (TABLE.t()[40:, :4], ANSWERS.clone()[:40].reshape(-1, 1), True),
        (TABLE.t()[:40, :4] + 0.1, ANSWERS[:40].reshape(-1, 1), True),
    ],
    ids=["their own", "a part that was never compared row by row", "some of the rows", "another table", "with noise"],
)
def test_losses_on_other_rows_are_sound(inputs, targets, before):
    assert fitted(inputs, targets, before=before) == set()


SCALED = [
    ("StandardScaler", {}), ("StandardScaler", {"with_mean": False}), ("MinMaxScaler", {}),
    ("MinMaxScaler", {"feature_range": (-1, 1)}), ("RobustScaler", {}), ("MaxAbsScaler", {}),
]  # fmt: skip


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
@pytest.mark.parametrize(("kind", "settings"), SCALED)
def test_a_fitted_scaler_is_repeated_by_its_arithmetic(kind, settings, method):
    scaler = getattr(preprocessing, kind)(**settings).fit(MANY.double().numpy())
    scaling, given = scaling_of(torch, scaler, method), MANY[:9].double()
    if settings.get("with_mean", True):
        expected = getattr(scaler, method)(given.numpy())
        assert scaling is not None
        torch.testing.assert_close(scaling(given), torch.as_tensor(expected))
    else:
        assert scaling is None


@pytest.mark.parametrize("scaler", [preprocessing.Normalizer(), preprocessing.StandardScaler(), object()])
def test_other_and_unfitted_scalers_are_not_repeated(scaler):
    assert scaling_of(torch, scaler, "transform") is None
    assert scaling_of(torch, preprocessing.StandardScaler().fit(MANY.numpy()), "fit_transform") is None
