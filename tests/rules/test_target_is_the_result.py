"""Targets that are the input of their loss."""

import pytest

from truestep.events import LossComputed, LossRead, OptimizerStepped, Site, StateLoaded, TargetsMatched
from truestep.rules.target_is_the_result import TargetIsTheResult
from truestep.testing import judge

LOSS, BACKWARD, OTHER = Site("train.py", 20, 14), Site("train.py", 22, 8), Site("train.py", 21, 14)
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)
COMPUTED = LossComputed(kind="cross_entropy", site=LOSS, input_from="AddmmBackward0")
READ = LossRead(value=1.0, site=BACKWARD, root="NllLossBackward0")


def matched(**more):
    facts = {"kind": "cross_entropy", "site": LOSS, "how": "argmax", "varied": True, "labels": 50}
    return TargetsMatched(**(facts | more))


def after(*events, beside=(), before=()):
    steps = [event for one in events for event in (one, COMPUTED, *beside, READ, STEP, STEP, STEP, STEP)]
    return judge(TargetIsTheResult, [*before, *steps])


def test_targets_that_are_the_result_are_found_at_the_loss():
    (finding,) = after(*[matched()] * 4)
    assert finding.primary.site == LOSS
    assert finding.related[0].site == BACKWARD
    assert "largest entries" in finding.message
    assert finding.seen.count == 4


@pytest.mark.parametrize(
    ("events", "more"),
    [
        ([matched()] * 2, {}),
        ([*[matched()] * 4, matched(how="")], {}),
        ([matched(varied=False)] * 4, {}),
        ([matched(labels=8)] * 4, {}),
        ([matched()] * 4, {"beside": [LossComputed(kind="mse_loss", site=OTHER, input_from="AddmmBackward0")]}),
        ([matched()] * 4, {"beside": [LossRead(value=1.0, site=BACKWARD, root="AddBackward0")]}),
        ([matched()] * 4, {"before": [StateLoaded(site=OTHER, parameters=(1,))]}),
        ([matched()] * 4, {"before": [STEP] * 10}),
    ],
    ids=["few", "others later", "one value", "few labels", "another loss", "a term", "loaded", "late"],
)
def test_healthy_targets_are_quiet(events, more):
    assert not after(*events, **more)


def test_values_without_a_gradient_that_are_equal_are_found_beside_other_losses():
    other = LossComputed(kind="mse_loss", site=OTHER, input_from="AddmmBackward0")
    (finding,) = after(*[matched(how="detach", graph=False)] * 4, beside=[other])
    assert finding.primary.site == LOSS
    assert "neither has a gradient" in finding.message


def test_values_that_are_equal_at_first_only_are_quiet():
    assert not after(*[matched(how="detach", graph=False)] * 4, matched(how="", graph=False))
    assert not after(*[matched(how="detach", graph=False, varied=False)] * 4)
