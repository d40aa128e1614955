"""Overlaps on the tape: dice, IoU and Tversky of scores, and softmaxes across the classes."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

X = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
MASK = (X > 0.5).float()
CLASSES = (X[:, 0] > 0).long() + (X[:, 0] > 1).long()
ONE_HOT = F.one_hot(CLASSES, 3).permute(0, 3, 1, 2).float()


def read(loss_of, channels=1):
    torch.manual_seed(0)
    layer = nn.Conv2d(1, channels, 3, padding=1)
    with capture_events() as events:
        loss_of(layer(X)).backward()
    return [event for event in events if isinstance(event, ev.OverlapRead)]


def dice(prob, target, dims=(0, 1, 2, 3)):
    inter = (prob * target).sum(dims)
    return 1 - ((2 * inter + 1) / (prob.sum(dims) + target.sum(dims) + 1)).mean()


def iou(prob, target):
    prob, target = prob.reshape(-1), target.reshape(-1)
    inter = (prob * target).sum()
    return 1 - inter / (prob.sum() + target.sum() - inter).clamp(min=1e-6)


def tversky(prob, target):
    hits, wrong, missed = (prob * target).sum(), (prob * (1 - target)).sum(), (target * (1 - prob)).sum()
    return 1 - (hits + 1) / (hits + 0.3 * wrong + 0.7 * missed + 1)


def squared(prob, target):
    return 1 - 2 * (prob * target).sum() / (prob.square().sum() + target.sum())


def of_each_class(prob, target):
    return sum(dice(prob[:, one : one + 1], target[:, one : one + 1]) for one in range(3)) / 3


@pytest.mark.parametrize("overlap", [dice, iou, tversky])
def test_an_overlap_of_scores_is_found(overlap):
    (event,) = read(lambda out: F.binary_cross_entropy_with_logits(out, MASK) + overlap(out, MASK))
    assert (event.scores, event.shared, event.crossed) == (True, True, False)


@pytest.mark.parametrize("overlap", [dice, of_each_class])
def test_scores_of_several_classes_are_found(overlap):
    valid = (CLASSES < 2).unsqueeze(1).float()
    (event,) = read(lambda out: F.cross_entropy(out, CLASSES) + overlap(out * valid, ONE_HOT * valid), 3)
    assert event.shared


def test_a_quotient_beyond_one_is_told():
    (event,) = read(lambda out: dice(out * 0 + 5 * (out - out.detach()) + out, MASK))
    assert event.scores
    (event,) = read(lambda out: 1 - 9 * (out * MASK).sum() / (out.sum() + MASK.sum() + 1))
    assert event.outside


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out: dice(torch.sigmoid(out), MASK),
        lambda out: F.binary_cross_entropy_with_logits(out, MASK) + iou(out.sigmoid(), MASK),
        lambda out: dice(out.clamp(0, 1), MASK),
        lambda out: dice(F.hardsigmoid(out), MASK),
        lambda out: tversky(out.relu(), MASK),
        lambda out: squared(out, MASK),
        lambda out: (out * MASK).sum() / (out * (1 - MASK)).sum(),
        lambda out: (out * MASK).sum() / (out.sum() + 1e-6),
        lambda out: (out * MASK).sum() / MASK.sum(),
        lambda out: (out * X).sum() / (out.sum() + 100),
        lambda out: (out / out.sum() * MASK).sum(),
        lambda out: 1 - F.cosine_similarity(out, MASK).mean(),
        lambda out: (out.exp() * MASK).sum() / out.exp().sum(),
    ],
    ids=[
        "sigmoid",
        "method",
        "clamp",
        "hardsigmoid",
        "relu",
        "squares",
        "groups",
        "share",
        "mean",
        "returns",
        "shares",
        "cosine",
        "exp",
    ],
)
def test_overlaps_of_outputs_with_a_range_and_other_quotients_are_quiet(loss_of):
    assert not read(loss_of)


@pytest.mark.parametrize("dim", [0, 2, 3])
def test_a_softmax_across_the_image_is_found(dim):
    (event,) = read(lambda out: F.cross_entropy(out, CLASSES) + dice(out.softmax(dim), ONE_HOT, (0, 2, 3)), 3)
    assert (event.crossed, event.scores) == (True, False)


def test_a_softmax_over_the_classes_and_one_over_positions_are_quiet():
    assert not read(lambda out: dice(out.softmax(1), ONE_HOT, (0, 2, 3)), 3)
    points = F.one_hot(torch.tensor([5, 40, 3, 63, 8, 9]), 64).float().view(6, 1, 64)
    assert not read(lambda out: dice(out.flatten(2).softmax(-1), points, (-1,)))
