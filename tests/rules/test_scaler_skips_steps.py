import pytest

from truestep.events import HandStepped, LossNotFinite, OptimizerBuilt, OptimizerStepped, ScalerStepped, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.scaler_skips_steps import ScalerSkipsSteps
from truestep.testing import judge

LINE = Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", parameters=(1,), site=Site("train.py", 12))
SKIPPED = ScalerStepped(scaler=1, optimizer=1, skipped=True, site=LINE)
MADE = [OptimizerStepped(optimizer=1, scaler=True), ScalerStepped(scaler=1, optimizer=1, site=LINE)]


def test_a_long_row_of_skipped_steps_is_found_at_its_line():
    (finding,) = judge(ScalerSkipsSteps, [BUILT, *MADE * 20, *[SKIPPED] * 130], ended="stopped")
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.total) == (130, 150)
    assert finding.cost == "130 of 150 scaler steps changed no weight"
    assert "`opt`" in finding.message


@pytest.mark.parametrize(
    "events",
    [
        [*[SKIPPED] * 40, *MADE * 200],
        [*[SKIPPED] * 3, *MADE] * 100,
        [LossNotFinite(), SKIPPED] * 300,
        [SKIPPED, OptimizerStepped(optimizer=1)] * 300,
        [SKIPPED, HandStepped()] * 300,
        [ScalerStepped(scaler=1, skipped=True, site=LINE)] * 300,
    ],
    ids=["a scale is found", "a scale that grows often", "losses of NaN", "a step beside it", "by hand", "unknown"],
)
def test_skipped_steps_that_mean_no_harm_or_are_named_elsewhere_are_quiet(events):
    assert judge(ScalerSkipsSteps, [BUILT, *events]) == []


def test_one_optimizer_of_two_that_never_steps_is_found():
    other = ScalerStepped(scaler=1, optimizer=2, skipped=True, site=Site("train.py", 33, 8))
    (finding,) = judge(ScalerSkipsSteps, [BUILT, *[*MADE, other] * 120])
    assert finding.primary.site == other.site


def test_steps_that_came_again_are_counted():
    rule, run = ScalerSkipsSteps(), Progress()
    for _ in range(100):
        rule.observe(SKIPPED, run)
    rule.again(SKIPPED, 50)
    rule.observe(SKIPPED, run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 151


def test_a_run_without_a_scaler_is_not_observed():
    verdict = ScalerSkipsSteps().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no GradScaler")
