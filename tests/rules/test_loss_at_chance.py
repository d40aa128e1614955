import math

import pytest

from truestep.events import (
    BackwardEnded,
    ClassesTrained,
    LoaderMet,
    LoaderStarted,
    LossComputed,
    LossRead,
    ModelMet,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence
from truestep.rules.loss_at_chance import LossAtChance
from truestep.testing import judge

LOSS, BACKWARD = Site("train.py", 21), Site("train.py", 22)
MET = [
    ModelMet(model=1, name="net", parameters=(1, 2)),
    LoaderMet(loader=1, name="train", dataset=1, batches=20, workers=0, sampler="random", site=Site("train.py", 3)),
]
FOUR = tuple((number, 25) for number in range(4))


def step(value, labels=FOUR, *, scaled=False, reduction="mean"):
    return [
        LossComputed(kind="cross_entropy", classes=4, site=LOSS, reduction=reduction),
        ClassesTrained(kind="cross_entropy", classes=4, labels=labels, site=LOSS),
        LossRead(value=value, site=BACKWARD, root="NllLossBackward0", scaled=scaled),
        BackwardEnded(site=BACKWARD, loader=1),
        OptimizerStepped(optimizer=1),
    ]


def run(*values, passes=10, **settings):
    each = max(1, len(values) // passes)
    events = []
    for begin in range(0, len(values), each):
        events.append(LoaderStarted(loader=1))
        for value in values[begin : begin + each]:
            events += step(value, **settings)
    return judge(LossAtChance, [*MET, *events, RunEnded(how="finished")])


def test_a_loss_that_stays_at_the_entropy_of_the_labels_is_reported():
    (finding,) = run(*[1.5] * 10, *[1.39] * 150)
    assert finding.primary.site == LOSS
    assert finding.message == "the loss is still that of guesses after 10 passes over the data"
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label == "1.39 at the end, 1.39 for guesses among 4 classes"


def test_a_short_run_is_a_suspicion():
    (finding,) = run(*[1.39] * 60, passes=3)
    assert finding.confidence is Confidence.LOW


def test_the_frequencies_of_the_labels_count():
    rare = ((0, 97), (1, 1), (2, 1), (3, 1))
    entropy = -(0.97 * math.log(0.97) + 0.03 * math.log(0.01))
    assert run(*[entropy] * 60, labels=rare) == []
    assert len(run(*[0.6] * 60, labels=((0, 80), (1, 20)))) == 1


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ([1.39] * 40 + [1.2] * 20, {}),
        ([1.39] * 30, {}),
        ([1.39] * 60, {"passes": 2}),
        ([1.39] * 60, {"scaled": True}),
        ([1.39] * 60, {"reduction": "sum"}),
    ],
    ids=["falls", "few steps", "two passes", "scaled", "sum"],
)
def test_others_are_quiet(values, settings):
    assert run(*values, **settings) == []
