import pytest

from truestep.events import FreezeIgnored, ModelMet, OptimizerBuilt, ParameterMet, ParametersUnchanged, Site, TapeRead
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.freeze_without_effect import FreezeWithoutEffect
from truestep.testing import judge

CALL, LINE = Site("train.py", 30, 17), Site("train.py", 8, 0)
NET = ModelMet(model=1, name="net", parameters=(1, 2), site=CALL)
MET = [
    ParameterMet(parameter=1, name="net.body.weight", model=1),
    ParameterMet(parameter=2, name="net.head.weight", model=1),
    NET,
]
BUILT = OptimizerBuilt(optimizer=1, name="optimizer", parameters=(1, 2))
TAPE = TapeRead(reached=(1, 2))
MODULE = FreezeIgnored(model=1, holder="body", attribute="requires_grad", parameters=(1,), site=LINE)
MOVED = ParametersUnchanged(parameters=(), moved=(1, 2), steps=3)


def test_an_attribute_of_a_module_is_found_at_its_line():
    (finding,) = judge(FreezeWithoutEffect, [*MET, BUILT, TAPE, MODULE, MOVED])
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "`requires_grad = False` froze nothing in `net.body`"
    assert finding.related[0].site == CALL
    assert finding.cost == "`optimizer` has moved net.body.weight"


def test_a_misspelling_whose_line_is_not_known_is_found_at_the_model():
    wrong = FreezeIgnored(model=1, holder="body.weight", attribute="require_grad", parameters=(1,))
    (finding,) = judge(FreezeWithoutEffect, [*MET, BUILT, TAPE, wrong, MOVED])
    assert finding.primary.site == CALL
    assert finding.primary.label == "`require_grad` is an attribute that nothing reads"


def test_a_part_seen_in_two_models_is_reported_once():
    other = FreezeIgnored(model=2, holder="0", attribute="requires_grad", parameters=(1,), site=LINE)
    events = [*MET, ModelMet(model=2, name="both", parameters=(1, 2)), BUILT, TAPE, MODULE, other, MOVED]
    assert len(judge(FreezeWithoutEffect, events)) == 1


@pytest.mark.parametrize(
    "events",
    [
        [*MET, BUILT, TAPE, MOVED],
        [*MET, OptimizerBuilt(optimizer=1, parameters=(2,)), TAPE, MODULE, MOVED],
        [*MET, BUILT, TapeRead(reached=(2,)), MODULE, MOVED],
        [*MET, BUILT, TAPE, MODULE, ParametersUnchanged(parameters=(1,), moved=(2,), steps=3)],
        [*MET, BUILT, TAPE, MODULE, ParametersUnchanged(parameters=(), moved=(1, 2), steps=1)],
    ],
    ids=["no attribute", "in no optimizer", "not reached", "does not move", "too early"],
)
def test_what_is_not_trained_is_quiet(events):
    assert judge(FreezeWithoutEffect, events) == []


def test_a_run_of_few_steps_is_not_observed():
    assert FreezeWithoutEffect().verdict(Progress()).outcome is Outcome.NOT_OBSERVED
