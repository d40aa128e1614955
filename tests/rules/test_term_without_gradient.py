"""Terms of a loss that were computed from tensors with a gradient, and have none."""

import pytest

from truestep.events import (
    BackwardEnded,
    DistancesRead,
    LossComputed,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    RunEnded,
    Site,
    TapeRead,
    TermsRead,
)
from truestep.findings import Confidence
from truestep.rules.term_without_gradient import TermWithoutGradient
from truestep.testing import judge

BACKWARD, TERM = Site("train.py", 34, 8), Site("train.py", 30, 20)
CUT = TermsRead(site=BACKWARD, place=TERM, cut=".detach()", name="penalty")
WITH = TermsRead(site=BACKWARD)
STEP = [TapeRead(site=BACKWARD), BackwardEnded(site=BACKWARD, written=1)]


def test_the_failure_is_found_at_its_line():
    (finding,) = judge(TermWithoutGradient, [*STEP, CUT] * 4)
    assert finding.primary.site == TERM
    assert finding.primary.label == "is cut by `.detach()`"
    assert "`penalty`" in finding.message
    assert finding.seen.count == 4


@pytest.mark.parametrize(
    ("cut", "label"),
    [("", "has no gradient"), ("torch.no_grad()", "is computed under `torch.no_grad()`")],
)
def test_the_cut_is_named(cut, label):
    (finding,) = judge(TermWithoutGradient, [TermsRead(site=BACKWARD, place=TERM, cut=cut)] * 3)
    assert finding.primary.label == label
    assert finding.message.startswith("a term of the loss")


def test_the_corrected_code_is_quiet():
    assert not judge(TermWithoutGradient, STEP * 4)


@pytest.mark.parametrize("events", [[CUT] * 5 + [WITH], [CUT, WITH, CUT, CUT, CUT]])
def test_a_term_that_has_a_gradient_in_other_steps_is_quiet(events):
    assert not judge(TermWithoutGradient, events)


def losses(*blank):
    return [LossComputed(kind="cross_entropy", site=TERM, blank=one) for one in blank]


def test_rows_of_scores_that_nothing_has_computed_are_found():
    (finding,) = judge(TermWithoutGradient, losses(32, 32, 32, None))
    assert finding.primary.site == TERM
    assert finding.message == "the loss counts 32 rows of scores that nothing has computed"
    assert (finding.seen.count, finding.seen.total) == (3, 3)


@pytest.mark.parametrize("blank", [(32, 32), (32, 0, 32, 32, 32), (None,) * 5])
def test_rows_that_are_zero_in_few_steps_are_quiet(blank):
    assert not judge(TermWithoutGradient, losses(*blank))


def held(*reads):
    """Return the findings of steps with distances of two weights from kept values."""
    names = [ParameterMet(parameter=number, name=name) for number, name in ((1, "net.weight"), (2, "net.bias"))]
    events = [*names, ModelMet(model=1, parameters=(1, 2)), OptimizerBuilt(optimizer=1, parameters=(1, 2))]
    for read in reads:
        events += [read, BackwardEnded(site=BACKWARD), OptimizerStepped(optimizer=1)]
    return judge(TermWithoutGradient, [*events, RunEnded(how="finished")])


ZERO, OTHER = DistancesRead(site=BACKWARD, zero=(1, 2)), DistancesRead(site=BACKWARD, other=(1, 2))
LIVE = DistancesRead(site=BACKWARD, zero=(1, 2), live=True)


def test_a_distance_from_the_live_weights_holds_nothing():
    (finding,) = held(ZERO, LIVE, ZERO)
    assert finding.message == (
        "a penalty of the loss on the distance of net.weight, net.bias from kept values is always zero"
    )
    assert (finding.primary.site, finding.confidence, finding.seen.count) == (BACKWARD, Confidence.MEDIUM, 2)


@pytest.mark.parametrize(
    "reads",
    [
        [ZERO] * 5,
        [ZERO, LIVE, OTHER],
        [OTHER],
        [DistancesRead(site=BACKWARD, zero=(3,)), DistancesRead(site=BACKWARD, zero=(3,), live=True)],
    ],
    ids=["of copies", "other at last", "other", "in no optimizer"],
)
def test_other_distances_are_quiet(reads):
    assert held(*reads) == []


def test_a_derivative_without_a_graph_has_its_own_remedy():
    (finding,) = judge(TermWithoutGradient, [TermsRead(site=BACKWARD, place=TERM, cut="torch.autograd.grad")] * 2)
    assert finding.message.startswith("a derivative in the loss has no gradient")
    assert finding.help == "take the derivative with `create_graph=True`"
