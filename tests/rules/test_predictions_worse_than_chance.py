import pytest

from truestep.events import LossComputed, ModelMet, OptimizerBuilt, OptimizerStepped, ResultCompared, RunEnded, Site
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


LOSS = LossComputed(kind="cross_entropy", grad=True)
TURNED = tuple((number, (number + 1) % 10, 9) for number in range(10)) + tuple((n, n, 1) for n in range(10))


def exchanged(confused=TURNED, labels=TEN, site=COMPARED, call=CALL):
    equal = sum(count for target, predicted, count in confused if target == predicted)
    return ResultCompared(
        model=1, equal=equal, expected=10.0, labels=labels, confused=confused, site=site, call=call
    )  # fmt: skip


def test_classes_with_other_numbers_are_reported_with_the_pairs():
    (finding,) = found(LOSS, *STEPS, exchanged())
    assert finding.message == "`net` has learned other numbers of the classes than those of these targets"
    assert finding.primary.label == "predicts class 0 as 1, 1 as 2, 2 as 3, 3 as 4, ..."
    assert finding.cost == "10 of 100 predictions are right, 90 with the numbers exchanged"


def test_two_of_many_classes_that_are_exchanged_are_reported():
    confused = tuple((number, {3: 5, 5: 3}.get(number, number), 10) for number in range(6))
    (finding,) = found(LOSS, *STEPS, exchanged(confused, TEN[:6]))
    assert finding.primary.label == "predicts class 3 as 5, 5 as 3"


@pytest.mark.parametrize(
    "events",
    [
        [*STEPS, exchanged()],
        [LOSS, exchanged()],
        [LOSS, *STEPS, exchanged(TURNED[:3])],
        [LOSS, *STEPS, exchanged(), compared(95)],
        [LOSS, *STEPS, exchanged(), compared(95, labels=TEN[::-1], site=Site("train.py", 22))],
        [LOSS, *STEPS, exchanged(tuple((number, number // 2, 10) for number in range(10)))],
        [LOSS, *STEPS, exchanged(tuple((number, other, 5) for number in range(10) for other in (number, 9 - number)))],
    ],
    ids=["no classes", "before training", "few", "right before", "right beside", "joined", "half"],
)
def test_classes_that_are_not_exchanged_are_quiet(events):
    assert [one for one in found(*events) if "numbers" in one.message] == []


def test_a_model_beside_one_that_learns_is_quiet():
    built = [OptimizerBuilt(optimizer=1, parameters=(1, 2)), OptimizerBuilt(optimizer=2, parameters=(3,))]
    others = [ModelMet(model=2, name="other", parameters=(3,))]
    after = [OptimizerStepped(optimizer=2)] * 10
    assert found(LOSS, *others, *built, *STEPS, *after, exchanged()) == []
    assert len(found(LOSS, *others, *built, *STEPS, exchanged())) == 1
