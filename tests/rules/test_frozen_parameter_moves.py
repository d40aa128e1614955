import pytest

from truestep.events import FrozenStepped, OptimizerBuilt, ParameterMet, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.frozen_parameter_moves import FrozenParameterMoves
from truestep.testing import judge

STEP = Site("train.py", 30, 8)
BUILT = Site("train.py", 10, 12)
MET = [
    ParameterMet(parameter=1, name="net.body.weight", shape=(8, 4), trainable=False, model=1),
    ParameterMet(parameter=2, name="net.head.weight", shape=(2, 8), model=1),
    OptimizerBuilt(optimizer=1, name="optimizer", parameters=(1, 2), site=BUILT),
]


def looks(*moved, of=2, kind="used", optimizer=1):
    return [FrozenStepped(optimizer=optimizer, site=STEP, **{kind: moved}) for _ in range(of)]


def test_a_gradient_that_stays_moves_a_frozen_parameter():
    (finding,) = judge(FrozenParameterMoves, [*MET, *looks(), *looks(1, of=3)])
    assert finding.primary.site == STEP
    assert (finding.confidence, finding.severity) == (Confidence.HIGH, Severity.ERROR)
    assert finding.message == "`optimizer` moves frozen parameters"
    assert finding.primary.label == "moves net.body.weight with a gradient from before they were frozen"
    assert finding.related[0].site == BUILT
    assert (finding.seen.count, finding.seen.total) == (3, 5)


@pytest.mark.parametrize(("kind", "by"), [("zero", "weight decay or momentum"), ("bare", "the optimizer's own decay")])
def test_decay_and_momentum_are_a_warning(kind, by):
    (finding,) = judge(FrozenParameterMoves, [*MET, *looks(1, kind=kind)])
    assert finding.severity is Severity.WARNING
    assert by in finding.primary.label


@pytest.mark.parametrize(
    "events",
    [
        [*MET, *looks(of=9)],
        [*MET, *looks(1, of=1), *looks(of=9)],
        [*MET, *looks(1, of=1), *looks(1, of=1, optimizer=2)],
        [*MET, *looks(1, of=1), *looks(2, of=1)],
    ],
    ids=["never moves", "moves once", "two optimizers", "two parameters, once each"],
)
def test_what_was_not_seen_twice_is_quiet(events):
    assert judge(FrozenParameterMoves, events) == []


def test_without_frozen_parameters_it_is_not_observed():
    verdict = FrozenParameterMoves().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no frozen parameter in an optimizer")
