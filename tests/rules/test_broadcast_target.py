import pytest

from truestep.events import BackwardEnded, BroadcastOnTape, LossComputed, OptimizerStepped, Site, TapeRead
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.broadcast_target import BroadcastTarget
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)
TAPE = BroadcastOnTape(site=LINE, shape=(32, 1), wide=(32, 32))


def loss(input, target, kind="mse_loss", **more):
    return LossComputed(kind=kind, site=LINE, broadcast=(input, target), **more)


def test_a_column_against_a_row_is_found_at_the_loss():
    (finding,) = judge(BroadcastTarget, [loss((32, 1), (32,)), BackwardEnded(), STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.primary.label == "input (32, 1), target (32,): 1024 differences"
    assert "1024 differences for 32 samples" in finding.cost
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert "squeeze" in finding.help


@pytest.mark.parametrize("kind", ["l1_loss", "smooth_l1_loss", "huber_loss"])
def test_every_elementwise_loss_is_looked_at(kind):
    (finding,) = judge(BroadcastTarget, [loss((32,), (32, 1), kind)])
    assert "target.squeeze" in finding.help


@pytest.mark.parametrize(
    ("event", "confidence"),
    [
        (loss((32, 1), (1, 32)), Confidence.HIGH),
        (loss((32, 1), (1, 16)), Confidence.MEDIUM),
        (loss((8, 5, 1), (8, 1, 5)), Confidence.LOW),
        (loss((32, 1), (16,)), Confidence.MEDIUM),
        (loss((32, 1), (32,), reduction="none"), Confidence.MEDIUM),
    ],
)
def test_pairs_that_can_be_meant_have_less_confidence(event, confidence):
    (finding,) = judge(BroadcastTarget, [event])
    assert finding.confidence is confidence


@pytest.mark.parametrize(
    "event",
    [
        loss((32, 1), (1,)),
        loss((32, 1), ()),
        loss((8, 51, 1), (8, 1, 51), "huber_loss", reduction="none"),
        loss((8, 1), (1, 8), reduction="none"),
        loss((8, 1), (8, 8), reduction="none"),
        LossComputed(kind="mse_loss", site=LINE),
        loss((32, 1), (32,), "kl_div"),
    ],
    ids=[
        "one target",
        "a scalar",
        "quantile regression",
        "all pairs",
        "a table of pairs",
        "equal shapes",
        "another loss",
    ],
)
def test_healthy_shapes_are_quiet(event):
    assert judge(BroadcastTarget, [event, BackwardEnded(), STEP] * 3) == []


def test_a_target_that_had_broadcast_before_is_found():
    (finding,) = judge(BroadcastTarget, [loss((32, 1), (32, 32), given=("q", "target")), BackwardEnded(), STEP] * 3)
    assert finding.confidence is Confidence.MEDIUM
    assert finding.cost == "1024 differences for 32 samples"
    assert finding.help == "give all terms of `target` the same shape before they are added"


def test_a_loss_written_by_hand_is_found_at_its_second_step():
    assert judge(BroadcastTarget, [TAPE, BackwardEnded(), STEP]) == []
    (finding,) = judge(BroadcastTarget, [TAPE, BackwardEnded(), STEP] * 2)
    assert finding.confidence is Confidence.HIGH
    assert finding.seen.count == 2


def test_other_shapes_on_the_tape_have_medium_confidence():
    tape = BroadcastOnTape(site=LINE, shape=(8, 4, 1), wide=(8, 4, 4))
    (finding,) = judge(BroadcastTarget, [tape, BackwardEnded(), STEP] * 2)
    assert finding.confidence is Confidence.MEDIUM


def test_targets_with_a_column_for_each_environment_are_found():
    tape = BroadcastOnTape(site=LINE, shape=(16, 1), wide=(16, 4))
    (finding,) = judge(BroadcastTarget, [tape, BackwardEnded(), STEP] * 2)
    assert finding.confidence is Confidence.MEDIUM
    assert "(4, 1) and (4,) make one for each pair" in finding.help


def test_the_tape_of_a_loss_that_was_named_is_not_reported_twice():
    (finding,) = judge(BroadcastTarget, [loss((32, 1), (32,)), TAPE, BackwardEnded(), STEP] * 3)
    assert finding.message.startswith("mse_loss")


def test_a_run_without_losses_and_tape_is_not_observed():
    assert BroadcastTarget().verdict(Progress()).outcome is Outcome.NOT_OBSERVED
    assert BroadcastTarget().verdict(Progress(met={TapeRead})).outcome is Outcome.CLEAR


def test_the_help_speaks_of_the_users_variables():
    (finding,) = judge(BroadcastTarget, [loss((32, 1), (32,), given=("prediction", "prices"))])
    assert finding.help == "squeeze the input, `prediction.squeeze(-1)`, or write `prices.unsqueeze(-1)`"
