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
    RowsRead,
    RunEnded,
    Site,
    TargetsTrained,
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


def test_a_loss_that_falls_below_guesses_at_the_end_is_quiet():
    falling = [1.47, 1.43, 1.42, 1.42, 1.45, 1.41, 1.42, 1.42, 1.41, 1.41, 1.41, 1.41, 1.3]
    assert run(*[value for value in falling for _ in range(12)]) == []
    assert len(run(*[value for value in (*falling[:-1], 1.36) for _ in range(12)])) == 1


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


def of_sums(kind, values, targets, *, loader=1):
    root = {"mse_loss": "MseLossBackward0"}.get(kind, "BinaryCrossEntropyWithLogitsBackward0")
    events = []
    for number, (value, batch) in enumerate(zip(values, targets, strict=True)):
        events += [LoaderStarted(loader=1)] if number % 16 == 0 and loader else []
        events += [
            RowsRead(model=1, table="x", rows=480, read=30, least=0, most=479),
            LossComputed(kind=kind, site=LOSS),
            TargetsTrained(
                kind=kind, rows=30, sums=(sum(batch),), squares=(sum(one * one for one in batch),), site=LOSS
            ),
            LossRead(value=value, site=BACKWARD, root=root),
            BackwardEnded(site=BACKWARD, loader=loader),
            OptimizerStepped(optimizer=1),
        ]
    return judge(LossAtChance, [*MET, *events, RunEnded(how="finished")])


def batches(steps, spread=2.0):
    """Return targets around 100, some batches wider than others."""
    return [
        [100 + spread * (1 + step % 3 / 10) * (1 if place % 2 else -1) for place in range(30)] for step in range(steps)
    ]


@pytest.mark.parametrize("loader", [1, None])
def test_a_squared_error_of_the_mean_of_the_targets_is_reported(loader):
    chances = [(2.0 * (1 + step % 3 / 10)) ** 2 for step in range(160)]
    (finding,) = of_sums("mse_loss", chances, batches(160), loader=loader)
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label == "4.87 at the end, 4.87 for the mean of the targets"
    assert "the mean of all targets" in finding.cost


def test_targets_with_outliers_are_a_suspicion():
    targets = [[100.0 + place % 2 for place in range(29)] + [100.0 + 20 * (step % 5 == 0)] for step in range(160)]
    mean = sum(map(sum, targets)) / (160 * 30)
    chances = [sum((one - mean) ** 2 for one in batch) / 30 for batch in targets]
    (finding,) = of_sums("mse_loss", chances, targets)
    assert finding.confidence is Confidence.LOW


def test_a_squared_error_below_that_of_the_mean_is_healthy():
    assert not of_sums("mse_loss", [0.9 * (2.0 * (1 + step % 3 / 10)) ** 2 for step in range(160)], batches(160))


def test_the_error_of_one_batch_below_its_guess_shows_that_the_model_learns():
    values = [(2.0 * (1 + step % 3 / 10)) ** 2 for step in range(160)]
    assert not of_sums("mse_loss", [*values[:-1], 0.5 * values[-1]], batches(160))


def test_a_binary_loss_is_compared_with_the_share_of_positive_labels():
    labels = [[1.0] * 10 + [0.0] * 20] * 160
    chance = -math.log(1 / 3) / 3 - 2 * math.log(2 / 3) / 3
    (finding,) = of_sums("binary_cross_entropy_with_logits", [chance] * 160, labels)
    assert finding.primary.label == "0.637 at the end, 0.637 for guesses with the share of positive labels"
    assert not of_sums("binary_cross_entropy_with_logits", [0.9 * chance] * 160, labels)


def test_constant_targets_are_no_guess():
    assert not of_sums("mse_loss", [0.0] * 160, [[1.0] * 30] * 160)
