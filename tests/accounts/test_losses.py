"""The account of losses on hand-built events."""

import math

import pytest

from truestep.accounts import Losses
from truestep.events import LossComputed, LossRead, Site
from truestep.rules import Progress

LINE, OTHER = Site("train.py", 30, 8), Site("train.py", 50, 8)
CROSS = LossComputed(kind="cross_entropy", site=LINE, classes=10)
ROOT = "NllLossBackward0"


def account(*events) -> Losses:
    run = Progress()
    for event in events:
        run.note(event)
    return run.losses


def test_a_run_without_values_has_no_line():
    assert account(CROSS).entry() is None


def test_a_cross_entropy_is_compared_with_chance():
    reads = [LossRead(value=value, site=LINE, root=ROOT) for value in (2.31, 1.2, 0.51)]
    entry = account(*[CROSS] * 3, *reads).entry()
    assert entry.text == "cross entropy of 10 classes: 2.31 at first (chance 2.3), 0.51 at last"
    assert entry.facts["lines"][0]["chance"] == pytest.approx(math.log(10))
    assert entry.facts["functions"] == [{"kind": "cross_entropy", "classes": 10, "reduction": "mean", "calls": 3}]


def test_evaluations_are_no_losses():
    looked = LossComputed(kind="cross_entropy", site=OTHER, classes=3, grad=False)
    assert account(looked, CROSS, LossRead(value=1.0, site=LINE, root=ROOT)).classes == 10


def test_divided_losses_have_no_chance():
    read = LossRead(value=0.6, site=LINE, root=ROOT, scaled=True)
    assert account(CROSS, read).entry().text == "cross entropy of 10 classes, scaled: 0.6"


def test_losses_over_different_classes_have_no_number_of_classes():
    other = LossComputed(kind="cross_entropy", site=OTHER, classes=3)
    assert account(CROSS, other, LossRead(value=0.6, site=LINE, root=ROOT)).entry().text == "cross entropy: 0.6"


def test_losses_of_two_lines_are_distinguished():
    root = "BinaryCrossEntropyWithLogitsBackward0"
    reads = [LossRead(value=value, site=site, root=root) for value in (0.7, 0.5) for site in (LINE, OTHER)]
    text = account(*reads).entry().text
    assert text.startswith("binary cross entropy of logits (train.py:30): 0.7 at first, 0.5 at last; ")
    assert "(train.py:50)" in text


def test_losses_by_hand_are_named_by_their_last_operation():
    assert account(LossRead(value=3.0, site=LINE, root="AddBackward0")).entry().text == "sum of terms: 3"
