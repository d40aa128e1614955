from truestep import events as ev
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.forward_called_directly import ForwardCalledDirectly
from truestep.testing import judge

LINE = ev.Site("train.py", 20, 8)


def call(**more):
    return ev.ForwardCalledDirectly(kind="Net", name="net", site=LINE, **more)


def test_skipped_hooks_are_found_at_the_call():
    (finding,) = judge(ForwardCalledDirectly, [call(hooks=2, hook_names=("L1Unstructured", "record"))] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.seen.count == 3
    assert finding.primary.label == "2 hooks skipped: L1Unstructured, record"
    assert "`net(...)`" in finding.help


def test_a_call_without_hooks_has_low_confidence():
    (finding,) = judge(ForwardCalledDirectly, [call()])
    assert finding.confidence is Confidence.LOW


def test_hooks_added_later_raise_the_confidence():
    (finding,) = judge(ForwardCalledDirectly, [call(), call(hooks=1)])
    assert finding.confidence is Confidence.HIGH
    assert "1 hook skipped" in finding.primary.label


def test_calls_of_the_module_are_clear():
    assert judge(ForwardCalledDirectly, [ev.ModelCalled(model=1)]) == []
    assert ForwardCalledDirectly().verdict(Progress(met={ev.ModelCalled})).outcome is Outcome.CLEAR


def test_a_run_without_a_model_is_not_observed():
    assert ForwardCalledDirectly().verdict(Progress()).reason == "no model call"
