"""Weights of samples on the tape: beside a loss of each sample, and beside one that is averaged already."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

NET, ONE, OTHER = nn.Linear(4, 3), nn.Linear(4, 1), nn.Linear(4, 1)
X, Y, T = torch.randn(8, 4), torch.arange(8) % 3, torch.linspace(0, 1, 8)
HALF = (T > 0.5).float()
W, MASK = torch.linspace(0.5, 2.0, 8), torch.tensor([1.0] * 6 + [0.0] * 2)
MATRIX = torch.tensor([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
IGNORED, BY_CLASS = torch.tensor([0, 1, 2, 0, 1, -1, -1, -1]), torch.tensor([0.5, 1.0, 2.0])
VECTOR = nn.Parameter(torch.ones(8))


def reads(loss_of):
    with capture_events() as events:
        for _ in range(2):
            loss_of().backward()
    return [event for event in events if isinstance(event, ev.WeightsFollowed)]


def entropy(**options):
    return F.cross_entropy(NET(X), Y, **options)


def outputs():
    return ONE(X).squeeze(1)


def entropy_of(labels, weight=None):
    return F.cross_entropy(NET(X), labels, weight=weight, ignore_index=-1)


def focal(mean):
    return (1 - torch.exp(-mean)) ** 2 * mean


def focal_of_logarithm():
    logp = -entropy()
    return -((1 - logp.exp()) ** 2) * logp


def focal_with_weights():
    mean = entropy()
    return (W * (1 - torch.exp(-mean)) ** 2 * mean).mean()


def mixed():
    scores = NET(X)
    return (T * F.cross_entropy(scores, Y) + (1 - T) * F.cross_entropy(scores, Y.flip(0))).mean()


def product_with_itself():
    errors = NET(X) - X[:, :3]
    return ((errors * errors).mean() * W).mean()


REDUCED = {
    "cross entropy": lambda: (entropy() * W).mean(),
    "mask": lambda: (entropy() * MASK).sum() / MASK.sum(),
    "mask of a batch and a length": lambda: (entropy() * MATRIX).sum() / MATRIX.sum(),
    "sum that is divided by the mask": lambda: (entropy(reduction="sum") * MASK).sum() / MASK.sum(),
    "weights in a column": lambda: (entropy() * W[:, None]).mean(),
    "binary": lambda: (F.binary_cross_entropy_with_logits(outputs(), HALF) * W).mean(),
    "binary of probabilities": lambda: (W * F.binary_cross_entropy(outputs().sigmoid(), HALF)).sum(),
    "squared errors": lambda: (F.mse_loss(outputs(), T) * W).mean(),
    "squared errors by hand": lambda: (((outputs() - T) ** 2).mean() * W).mean(),
    "absolute errors by hand": lambda: ((T - outputs()).abs().mean() * W).sum() / W.sum(),
    "product with itself": product_with_itself,
    "huber": lambda: (W * F.smooth_l1_loss(outputs(), T)).mean(),
    "one lambda for each sample": mixed,
    "scaled first": lambda: (0.5 * entropy() * W).mean(),
    "beside other terms": lambda: (entropy() * W).mean() + 0.1 * F.mse_loss(outputs(), T),
    "advantages": lambda: (entropy() * (T - 0.5)).mean(),
}
FOCAL = {
    "by the mean": lambda: focal(entropy()),
    "with a factor": lambda: 0.25 * focal(entropy()),
    "by the logarithm": focal_of_logarithm,
    "beside weights of classes": focal_with_weights,
    "binary": lambda: focal(F.binary_cross_entropy_with_logits(outputs(), HALF)),
}


def one_place_for_each_group():
    total = torch.zeros(4)
    for group in range(4):
        rows = slice(2 * group, 2 * group + 2)
        total = total + F.mse_loss(NET(X[rows])[:, :2].repeat(2, 2), X[rows].repeat(2, 1)) * torch.eye(4)[group]
    return total.sum()


def distance_times_radii():
    return ((VECTOR - 1.5).pow(2).mean() * W).sum()


def parts_of_several_images():
    return sum(focal(F.cross_entropy(NET(rows), labels)) for rows, labels in zip(X.split(4), Y.split(4), strict=True))


def shares_by_the_losses():
    first, second = entropy(), F.mse_loss(outputs(), T)
    a, b = first.exp(), second.exp()
    return a / (a + b) * first + b / (a + b) * second


def spread_times_a_shape():
    values = outputs()
    return ((values - values.mean()).pow(2).mean() * W).mean()


def tilted():
    mean = entropy()
    return mean * (0.1 * mean).exp()


QUIET = {
    "positions that the mean is of": lambda: (entropy_of(IGNORED) * (IGNORED >= 0)).sum() / (IGNORED >= 0).sum(),
    "weights of the classes again": lambda: (entropy_of(Y, BY_CLASS) * BY_CLASS[Y]).mean(),
    "equal weights": lambda: (entropy() * torch.ones(8)).mean(),
    "a number": lambda: (entropy() * torch.tensor(0.5)).mean(),
    "three weights": lambda: (entropy() * torch.tensor([0.1, 0.2, 0.3])).sum(),
    "weights of something else": lambda: (entropy() * torch.linspace(0, 1, 5)).sum(),
    "weights with a gradient": lambda: (entropy() * VECTOR).mean(),
    "log-probability of an episode times its rewards": lambda: (entropy(reduction="sum") * W).sum(),
    "density of a joint sample times its rewards": lambda: (0.5 * ((outputs() - T) ** 2).sum() * (T - 0.2)).sum(),
    "one place for each group": one_place_for_each_group,
    "parameters": distance_times_radii,
    "a power, not an error": lambda: (outputs().pow(2).mean() * W).mean(),
    "a spread": spread_times_a_shape,
    "losses of each sample beside it": lambda: (F.mse_loss(outputs(), T) * W * OTHER(X).squeeze(1)).mean(),
    "weights of tasks": lambda: (torch.stack([entropy()] * 4) * torch.linspace(0, 1, 4)).sum(),
    "a focal factor of each sample": lambda: focal(entropy(reduction="none")).mean(),
    "a focal factor of each image": parts_of_several_images,
    "a focal factor of one image": lambda: focal(F.cross_entropy(NET(X).T[None], Y[None])),
    "shares by the losses": shares_by_the_losses,
    "a tilted mean": tilted,
}
WEIGHTED = {
    "cross entropy": lambda: (entropy(reduction="none") * W).mean(),
    "mask": lambda: (entropy(reduction="none") * MASK).sum() / MASK.sum(),
    "squared errors": lambda: (W * F.mse_loss(outputs(), T, reduction="none")).sum(),
}


@pytest.mark.parametrize("loss", REDUCED.values(), ids=list(REDUCED))
def test_weights_of_an_averaged_loss_are_found(loss):
    assert [event.reduced for event in reads(loss)] == ["weights"] * 2


@pytest.mark.parametrize("loss", FOCAL.values(), ids=list(FOCAL))
def test_a_focal_factor_of_the_mean_is_found(loss):
    assert [(event.reduced, event.count) for event in reads(loss)] == [("focal", 8)] * 2


@pytest.mark.parametrize("loss", WEIGHTED.values(), ids=list(WEIGHTED))
def test_weights_of_each_loss_are_seen_too(loss):
    assert [event.reduced for event in reads(loss)] == [""] * 2


@pytest.mark.parametrize("loss", QUIET.values(), ids=list(QUIET))
def test_other_losses_are_quiet(loss):
    assert not any(event.reduced for event in reads(loss))


def with_variables():
    weights = W.clone()
    mean = F.cross_entropy(NET(X), Y)
    (mean * weights).mean().backward()


def test_the_variable_and_its_line_are_named():
    with capture_events() as events:
        with_variables()
    (event,) = [event for event in events if isinstance(event, ev.WeightsFollowed)]
    assert (event.name, event.count) == ("weights", 8)
    assert event.made.line == event.site.line - 1
