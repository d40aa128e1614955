import pytest

from truestep.events import AnomalyModeSeen, BackwardEnded, OptimizerStepped, Site
from truestep.findings import Outcome, Severity
from truestep.rules import Progress
from truestep.rules.anomaly_mode_left_on import AnomalyModeLeftOn

SWITCH, LINE = Site("train.py", 3, 0), Site("train.py", 20, 4)
STEP = OptimizerStepped(optimizer=1)


def found(steps, *, switch=SWITCH):
    rule, run = AnomalyModeLeftOn(), Progress()
    seen = AnomalyModeSeen(site=LINE, switch=switch)
    for step in steps:
        run.step = step
        rule.observe(seen, run)
    return rule.findings(run)


def test_it_is_found_at_the_line_that_switches_it_on():
    (finding,) = found([0, 1, 2, 3, 10, 20, 50, 100, 200])
    assert finding.severity is Severity.SPEED
    assert finding.primary.site == SWITCH
    assert finding.related[0].site == LINE
    assert finding.seen.count == 101


def test_it_is_found_at_the_backward_pass_where_no_line_of_the_file_switches_it_on():
    (finding,) = found([100, 200, 500], switch=None)
    assert finding.primary.site == LINE
    assert finding.related == ()
    assert finding.seen.count == 401


@pytest.mark.parametrize("steps", [[0, 1, 2, 3, 10, 20, 50], [0, 100], [200], [10, 500]])
def test_steps_that_are_looked_into_are_quiet(steps):
    assert found(steps) == []


@pytest.mark.parametrize(("steps", "outcome"), [(200, Outcome.NOT_OBSERVED), (201, Outcome.CLEAR)])
def test_a_short_run_is_not_observed(steps, outcome):
    rule, run = AnomalyModeLeftOn(), Progress()
    run.note(BackwardEnded())
    for _ in range(steps):
        run.advance(STEP)
    assert rule.verdict(run).outcome is outcome
