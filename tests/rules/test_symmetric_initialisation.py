import pytest

from truestep.events import ModelMet, OptimizerBuilt, ParameterMet, RowsEqual, Site, TapeRead
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.symmetric_initialisation import SymmetricInitialisation
from truestep.testing import judge

CALL = Site("train.py", 30, 17)
NET = ModelMet(model=1, name="net", parameters=(1, 2, 3), site=CALL)
MET = [
    ParameterMet(parameter=1, name="net.0.weight", shape=(64, 10), model=1),
    ParameterMet(parameter=2, name="net.0.bias", shape=(64,), model=1),
    ParameterMet(parameter=3, name="net.2.weight", shape=(4, 64), model=1),
    NET,
    OptimizerBuilt(optimizer=1, parameters=(1, 2, 3)),
    TapeRead(reached=(1, 2, 3)),
]


def looks(*moved, zero=(), steps=(2, 3, 4, 11, 21)):
    return [RowsEqual(moved=moved, zero=zero, steps=step) for step in steps]


def test_rows_that_stay_equal_while_they_are_trained_are_found_at_the_model():
    (finding,) = judge(SymmetricInitialisation, [*MET, *looks(1)])
    assert finding.primary.site == CALL
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "the rows of 1 weight of `net` started equal and are still equal"
    assert "net.0.weight" in finding.primary.label
    assert "64 units" in finding.cost
    assert (finding.seen.count, finding.seen.total) == (21, 21)


def test_constants_that_dropout_makes_different_have_medium_confidence():
    (finding,) = judge(SymmetricInitialisation, [*MET, *(RowsEqual(constant=(1, 3), steps=n) for n in (2, 11))])
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "2 weights of `net` started with one value everywhere"


def test_one_constant_weight_of_two_is_quiet():
    assert not judge(SymmetricInitialisation, [*MET, *(RowsEqual(constant=(3,), steps=n) for n in (2, 11))])


def test_layers_of_zeros_that_never_move_are_found():
    (finding,) = judge(SymmetricInitialisation, [*MET, *looks(zero=(1, 3))])
    assert finding.message == "all 2 weights of `net` started at zero and are still zero"
    assert finding.confidence is Confidence.MEDIUM


def test_a_part_that_is_a_model_too_is_reported_once():
    whole = ModelMet(model=2, name="self", parameters=(1, 2, 3), site=CALL)
    assert len(judge(SymmetricInitialisation, [*MET, whole, *looks(1)])) == 1


@pytest.mark.parametrize(
    "events",
    [
        [*MET, *looks()],
        [*MET, *looks(1, steps=(2, 3, 4))],
        [*MET, *looks(1), *looks(steps=(51,))],
        [*MET[:-1], *looks(1)],
        [*MET, *looks(zero=(3,))],
        [*MET[:-1], TapeRead(reached=(2,)), *looks(zero=(1, 3))],
        [*MET, *looks(zero=(1, 3), steps=(2, 3, 4, 11))],
    ],
    ids=[
        "only decayed", "the first steps", "parted later", "not reached", "a last layer of zeros", "zeros out of use",
        "zeros for a few steps",
    ],
)  # fmt: skip
def test_other_beginnings_are_quiet(events):
    assert judge(SymmetricInitialisation, events) == []


def test_a_run_of_few_steps_is_not_observed():
    verdict = SymmetricInitialisation().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "fewer than 10 optimizer steps")
