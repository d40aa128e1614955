import pytest

from truestep.events import ModelMet, OptimizerStepped, ResultCompared, RunEnded, Site
from truestep.rules.predictions_worse_than_chance import PredictionsWorseThanChance
from truestep.testing import judge

COMPARED, CALL = Site("train.py", 21), Site("train.py", 20)
TEN = tuple((number, 10) for number in range(10))
MET = ModelMet(model=1, name="net", parameters=(1, 2))
STEPS = [OptimizerStepped(optimizer=1)] * 20


def compared(equal, expected=10.0, labels=TEN, site=COMPARED):
    return ResultCompared(model=1, equal=equal, expected=expected, labels=labels, site=site, call=CALL)


def found(*events, how="finished"):
    return judge(PredictionsWorseThanChance, [MET, *events, RunEnded(how=how)])


def test_a_model_that_is_seldom_right_is_reported_with_its_numbers():
    (finding,) = found(*STEPS, *[compared(1)] * 4)
    assert finding.primary.site == COMPARED
    assert finding.message == "the predictions of `net` are worse than guesses"
    assert finding.cost == "4 of 400 predictions are right, 40 would be by chance"


@pytest.mark.parametrize(
    "events",
    [
        [*STEPS, *[compared(9)] * 4],
        [*STEPS, compared(1)],
        [*[compared(0)] * 4],
        [*STEPS, *[compared(1)] * 4, OptimizerStepped(optimizer=1), compared(40)],
        [*STEPS, *[compared(1)] * 6, compared(60, site=Site("train.py", 40)), compared(90, site=CALL)],
        [*STEPS, *[compared(0, expected=0.0, labels=((7, 100),))] * 4],
    ],
    ids=["by chance", "few", "before training", "right at last", "right elsewhere", "one class"],
)
def test_others_are_quiet(events):
    assert found(*events) == []


def test_a_run_that_failed_is_quiet():
    assert found(*STEPS, *[compared(1)] * 4, how="crashed") == []
