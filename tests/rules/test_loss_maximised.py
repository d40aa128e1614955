"""Losses that are made larger."""

import pytest

from truestep.events import (
    LossRead,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    ResultPushed,
    RunEnded,
    Site,
    StateLoaded,
)
from truestep.findings import Outcome
from truestep.rules._rule import Progress
from truestep.rules.loss_maximised import LossMaximised
from truestep.testing import judge

LINE, OTHER = Site("train.py", 20, 8), Site("train.py", 30, 8)
BUILT = OptimizerBuilt(optimizer=1, parameters=(1, 2), site=Site("train.py", 10))
WEIGHTS = [ParameterMet(parameter=1, name="weight", shape=(4, 3)), ParameterMet(parameter=2, name="bias", shape=(4,))]
MODEL = ModelMet(model=1, parameters=(1, 2))
STEP = OptimizerStepped(optimizer=1, observed=2, fresh=2)
MOVED = ParametersUnchanged(parameters=(), steps=10, moved=(1, 2))


def read(value, **more):
    return LossRead(**{"value": value, "site": LINE, "root": "NegBackward0"} | more)


def found(values, *before, beside=(), built=BUILT, **more):
    steps = [event for value in values for event in (read(value, **more), *beside, STEP, STEP)]
    return judge(LossMaximised, [*WEIGHTS, built, MODEL, *before, *steps, MOVED])


NEGATIVE = {"function": "MseLoss", "negative": True}
FALLING = [-1.0, -2.0, -5.0, -9.0, -20.0, -60.0]


def test_the_negative_of_a_loss_is_found_at_the_backward_pass():
    (finding,) = found(FALLING, **NEGATIVE)
    assert finding.primary.site == LINE
    assert finding.message == "the negative of the squared error is differentiated: it is made larger"
    assert finding.cost == "the loss went from -1 to -60"


def test_an_optimizer_that_maximizes_changes_the_sign():
    built = OptimizerBuilt(optimizer=1, parameters=(1, 2), maximizes=True, site=Site("train.py", 10))
    (finding,) = found([1.0, 2.0, 3.0, 5.0, 9.0], built=built, function="MseLoss")
    assert finding.related[0].label == "`maximize=True`"
    assert not found(FALLING, built=built, **NEGATIVE)


def test_a_loss_without_a_bound_is_found():
    (finding,) = found([-1.0, -5.0, -4.0, -80.0, -900.0, -20000.0])
    assert finding.message == "the loss falls without a bound, from -1 to -2e+04"


@pytest.mark.parametrize(
    ("values", "more"),
    [
        (FALLING, {"function": "MseLoss"}),
        (FALLING, {}),
        (FALLING[:3], NEGATIVE),
        (FALLING, NEGATIVE | {"beside": [LossRead(value=1.0, site=OTHER)]}),
        (FALLING, NEGATIVE | {"beside": [read(1.0, function="MseLoss")]}),
        ([-3000.0, -3500.0, -4000.0, -5000.0, -6000.0, -9000.0], {}),
    ],
    ids=["positive", "another value", "few", "two lines", "either sign", "large at first"],
)
def test_other_losses_are_quiet(values, more):
    assert not found(values, **more)


@pytest.mark.parametrize(("function", "outcome"), [("MseLoss", Outcome.CLEAR), ("", Outcome.NOT_OBSERVED)])
def test_another_value_is_not_called_clear(function, outcome):
    rule, run = LossMaximised(), Progress()
    for event in [*WEIGHTS, BUILT, MODEL, *[read(1.0, function=function), *[STEP] * 2] * 6, RunEnded(how="finished")]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
        run.advance(event)
    assert rule.verdict(run).outcome is outcome


def test_loaded_weights_are_quiet():
    assert not found(FALLING, StateLoaded(site=OTHER, parameters=(1, 2)), **NEGATIVE)


JUDGE = ModelMet(model=2, name="judge", parameters=(3,))
MAKER = ModelMet(model=1, name="maker", parameters=(1,))
BOTH_MOVED = ParametersUnchanged(parameters=(), steps=10, moved=(1, 3))


def push(scored=0, **more):
    return ResultPushed(model=2, scored=scored, **{"size": 0.5, "loss": LINE if scored else OTHER} | more)


def in_turns(own=False, other=False, real=True, rounds=3, beside=(), size=0.5, moved=BOTH_MOVED, built=()):
    """Return the findings on a model that scores the results of another one; the values are the directions."""
    scores = [push(up=real)] if real is not None else []
    first = [*scores, push(1, up=own), OptimizerStepped(optimizer=2)]
    second = [*beside, push(1, tracked=True, up=other, size=size, loss=SECOND), STEP]
    return judge(LossMaximised, [MAKER, JUDGE, *built, *(first + second) * rounds, moved])


SECOND = Site("train.py", 40, 8)


def test_two_models_that_move_scores_in_the_same_direction_are_found_at_the_second_loss():
    (finding,) = in_turns()
    assert finding.primary.site == SECOND
    assert [mark.site for mark in finding.related] == [LINE]
    assert "both make the scores of the results of `maker` smaller" in finding.message
    (finding,) = in_turns(own=True, other=True, real=False)
    assert finding.message.endswith("larger")


@pytest.mark.parametrize(
    "facts",
    [
        {"other": True},
        {"own": None},
        {"other": None},
        {"real": False},
        {"real": None},
        {"rounds": 2},
        {"beside": [push(up=True)]},
        {"size": 1.5},
        {"moved": ParametersUnchanged(parameters=(3,), steps=10, moved=(1,))},
    ],
    ids=["opposed", "own-both", "other-both", "real-alike", "no-real", "few", "both-scored", "far-target", "fixed"],
)
def test_models_that_oppose_each_other_or_share_a_loss_are_quiet(facts):
    assert in_turns(**facts) == []


def test_scores_that_are_saturated_in_the_end_do_not_count():
    saturated = [push(up=False), push(1, up=False, size=1e-5), OptimizerStepped(optimizer=2)]
    clear = [
        push(up=True),
        push(1, up=False),
        OptimizerStepped(optimizer=2),
        push(1, tracked=True, up=False, loss=SECOND),
        STEP,
    ]
    assert len(judge(LossMaximised, [MAKER, JUDGE, *clear * 4, *saturated, BOTH_MOVED])) == 1
    moved_back = [push(up=False), push(1, up=False), OptimizerStepped(optimizer=2)]
    assert judge(LossMaximised, [MAKER, JUDGE, *clear * 4, *moved_back, BOTH_MOVED]) == []


def test_the_directions_of_an_optimizer_that_maximises_are_not_those_of_its_loss():
    built = OptimizerBuilt(optimizer=2, parameters=(3,), maximizes=True, site=Site("train.py", 10))
    assert in_turns(built=(built,)) == []


@pytest.mark.parametrize(
    ("turned", "message"),
    [
        ("weights", "the size of the weights is subtracted from the loss: it is made larger"),
        ("entropy", "the entropy of the policy is added to the loss: it is made smaller"),
        (
            "ratio",
            "of the ratio of probabilities and the clipped one, the more favourable is taken: nothing is clipped",
        ),
        ("quotient", "errors are divided by values of both signs: those over a value below zero are made larger"),
    ],
)
def test_a_term_with_the_wrong_sign_is_found(turned, message):
    (finding,) = found([3.0, 2.0, 1.0, 0.5, 0.4], turned=turned)
    assert (finding.message, finding.primary.site) == (message, LINE)


def test_a_term_that_has_the_wrong_sign_at_times_or_is_maximised_is_quiet():
    values = [3.0, 2.0, 1.0, 0.5, 0.4]
    assert not found(values, turned="entropy", beside=[read(1.0)])
    assert not found(values, read(1.0), turned="entropy")
    assert not found(values[:4], turned="entropy")
    built = OptimizerBuilt(optimizer=1, parameters=(1, 2), maximizes=True, site=Site("train.py", 10))
    assert not found(values, turned="entropy", built=built)


@pytest.mark.parametrize(("small", "expected"), [(1, 1), (2, 0)])
def test_errors_over_values_of_one_sign_in_a_small_batch_change_nothing(small, expected):
    batch = [read(1.0, turned="quotient"), read(0.9, turned="quotient"), read(0.8, turned="quotient")]
    found_here = judge(LossMaximised, [*WEIGHTS, BUILT, MODEL, *[*batch, *[read(0.5)] * small, STEP] * 12, MOVED])
    assert len(found_here) == expected


def test_weights_that_an_opponent_makes_larger_are_quiet():
    opponent = LossRead(value=1.0, site=OTHER, root="AddBackward0")
    assert not found([3.0, 2.0, 1.0, 0.5, 0.4], turned="weights", beside=[opponent])
    assert found([3.0, 2.0, 1.0, 0.5, 0.4], turned="ratio", beside=[opponent])
