import pytest

from truestep.events import OptimizerStepped, SignedLabelsRead, Site
from truestep.findings import Confidence
from truestep.rules.labels_not_signs import LabelsNotSigns
from truestep.testing import judge

LINE, STEP = Site("train.py", 22), OptimizerStepped(optimizer=1)


def read(zeros, kind="hinge"):
    return SignedLabelsRead(site=LINE, kind=kind, zeros=zeros)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("hinge", "a hinge loss"), ("cosine embedding", "the cosine embedding loss"), ("logistic", "a logistic loss")],
)
def test_labels_of_0_and_1_are_found_at_the_backward_pass(kind, name):
    (finding,) = judge(LabelsNotSigns, [read(40, kind), STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.message == f"{name} got labels of 0 and 1: it expects -1 and 1"
    assert finding.seen.count == 3


@pytest.mark.parametrize(
    "events",
    [[read(40)], [read(0)] * 3, [read(40), STEP, read(40), STEP, read(0)], [read(0), STEP, read(40), STEP, read(40)]],
)
def test_labels_of_one_step_or_with_minus_one_are_quiet(events):
    assert judge(LabelsNotSigns, [*events, STEP]) == []
