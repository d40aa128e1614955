"""Labels of classification losses that are all equal."""

import pytest

from truestep.events import (
    LabelsCounted,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    Site,
)
from truestep.rules.labels_all_equal import LabelsAllEqual
from truestep.testing import judge

LOSS, OTHER = Site("train.py", 20, 14), Site("train.py", 21, 14)
MET = [
    ModelMet(model=1, name="net", parameters=(1,)),
    ParameterMet(parameter=1, name="weight", shape=(4, 3), model=1),
    OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1,)),
]
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)
MOVED = ParametersUnchanged(parameters=(), moved=(1,), steps=10)


def counted(**more):
    facts = {"kind": "cross_entropy", "site": LOSS, "classes": 4, "labels": 100, "rows": 100, "only": 0.0, "weight": 1}
    return LabelsCounted(**(facts | more))


def after(*events, moved=True):
    return judge(LabelsAllEqual, [*MET, *events, *[STEP] * 25, *[MOVED] * moved])


def test_equal_labels_are_found_at_their_loss():
    (finding,) = after(*[counted()] * 30)
    assert finding.primary.site == LOSS
    assert "4 classes" in finding.message
    assert "3,000 samples" in finding.primary.label
    assert finding.seen.count == 30


@pytest.mark.parametrize(
    "events",
    [
        [counted()] * 19,
        [*[counted()] * 30, counted(only=None, weight=None)],
        [*[counted()] * 30, *[counted(only=1.0, site=OTHER)] * 30],
        [counted(weight=None)] * 30,
    ],
    ids=["few", "several later", "another label elsewhere", "no layer of classes"],
)
def test_healthy_labels_are_quiet(events):
    assert not after(*events)


def test_a_layer_that_is_not_trained_is_quiet():
    assert not after(*[counted()] * 30, moved=False)
