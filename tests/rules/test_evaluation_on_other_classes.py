import pytest

from truestep.events import LabelsRead, RunEnded, Site
from truestep.rules.evaluation_on_other_classes import EvaluationOnOtherClasses
from truestep.testing import judge

LOSS, COMPARED, SPLIT = Site("train.py", 12), Site("train.py", 20), Site("train.py", 5)
FIVE = tuple((number, 100) for number in range(5))


def trained(classes=FIVE):
    return LabelsRead(training=True, table="y_train", classes=classes, site=LOSS)


def evaluated(classes, made=SPLIT):
    return LabelsRead(training=False, table="y_test", classes=classes, site=COMPARED, made=made)


def found(*events, how="finished"):
    return judge(EvaluationOnOtherClasses, [*events, RunEnded(how=how)])


def test_classes_without_a_sample_in_the_training_are_named_at_the_split():
    (finding,) = found(*[trained()] * 3, evaluated(((4, 50), (5, 50), (6, 50))))
    assert finding.primary.site == SPLIT
    assert finding.message == "the training has no sample of classes 5, 6, which the evaluation counts"
    assert finding.cost == "100 of 150 labels of the evaluation"


def test_without_the_line_of_the_split_the_comparison_is_named():
    (finding,) = found(*[trained()] * 3, evaluated(((7, 50),), made=None))
    assert finding.primary.site == COMPARED


def test_evaluations_on_one_class_are_named():
    (finding,) = found(*[trained()] * 3, evaluated(((1, 80),)))
    assert finding.message == "the evaluation has samples of class 1 only, and the training has 5 classes"


@pytest.mark.parametrize(
    "events",
    [
        [*[trained()] * 3, evaluated(((0, 20), (4, 20)))],
        [*[trained()] * 3, evaluated(((0, 20),)), evaluated(((1, 20),))],
        [*[trained()] * 3, trained(((5, 40), (6, 40))), evaluated(((6, 20), (7, 20)))],
        [*[trained()] * 3, evaluated(((0, 200), (1, 190), (9, 10)))],
        [*[trained(((0, 950), (1, 50)))] * 3, evaluated(((0, 80),))],
        [*[trained()] * 2, evaluated(((7, 50),))],
        [evaluated(((7, 50),))],
    ],
    ids=["same", "class by class", "several columns", "rare", "nearly one class", "two reads", "no training"],
)
def test_other_labels_are_quiet(events):
    assert found(*events) == []


def test_a_run_that_failed_is_quiet():
    assert found(*[trained()] * 3, evaluated(((7, 50),)), how="crashed") == []
