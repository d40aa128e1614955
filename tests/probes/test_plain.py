"""Predictions of a program beside the plain reading of the scores."""

import pytest
import torch

from truestep.probes.figures.plain import plainly_right

SCORES = torch.tensor([[-2.0], [1.5], [-0.7], [3.0], [-1.2], [0.4], [-3.1], [2.2], [-0.1], [0.6]])
RIGHT = (SCORES[:, 0] > 0).float()
WIDE = torch.eye(4).repeat(3, 1)
CLASSES = torch.arange(4).repeat(3)


@pytest.mark.parametrize(
    ("predicted", "plain"),
    [
        (torch.sigmoid(SCORES) > 0, 10),
        (torch.sigmoid(SCORES).long(), 10),
        (torch.round(2 * SCORES), 10),
        (SCORES > 0.5, None),
        (torch.where(SCORES.abs() < 1, -1, SCORES > 0), None),
        (torch.sigmoid(SCORES[:9]).long(), None),
    ],
)
def test_single_scores_are_read_where_predictions_are_alike_or_no_classes(predicted, plain):
    assert plainly_right(SCORES, predicted, RIGHT) == plain


def test_single_scores_beside_a_rare_class_are_not_read():
    rare = torch.zeros(10)
    rare[3] = 1
    assert plainly_right(SCORES, torch.zeros(10), rare) is None
    assert plainly_right(SCORES, torch.zeros(10), torch.zeros(10)) is None


def test_labels_of_minus_one_are_classes():
    assert plainly_right(SCORES[:, 0], torch.ones(10), 2 * RIGHT - 1) == 10


@pytest.mark.parametrize(
    ("predicted", "target", "plain"),
    [
        (WIDE.argmin(1), CLASSES, 12),
        (CLASSES, CLASSES.roll(1), 0),
        (torch.where(CLASSES > 2, -1, CLASSES), CLASSES, None),
        (CLASSES + 4, CLASSES + 4, None),
        (WIDE, CLASSES, None),
    ],
)
def test_the_largest_scores_are_read_where_predictions_and_targets_are_their_classes(predicted, target, plain):
    assert plainly_right(WIDE, predicted, target) == plain


def test_two_scores_have_thresholds():
    assert plainly_right(WIDE[:, :2], torch.zeros(12), torch.arange(12) % 2) is None
