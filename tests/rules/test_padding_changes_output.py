from dataclasses import replace

from truestep.events import InputsRead, ModelMet, PaddingCompared, Site
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.padding_changes_output import PaddingChangesOutput
from truestep.testing import judge

CALL = Site("train.py", 30, 13)
MET = ModelMet(model=1, name="net", parameters=(1, 2))
CHANGED = PaddingCompared(
    model=1, argument="tokens", length=38, trimmed=20, samples=8, share=0.7, changes=True, site=CALL
)


def inputs(*lengths):
    return [InputsRead(model=1, shape=(32, length), floating=False) for length in lengths]


def test_results_that_depend_on_padding_are_found_at_the_call():
    (finding,) = judge(PaddingChangesOutput, [MET, *inputs(38, 35), CHANGED])
    assert finding.primary.site == CALL
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the result of `net` for a sample depends on its padding"
    assert "20 of 38 positions" in finding.primary.label
    assert "up to 70%" in finding.cost
    assert "`tokens`" in finding.help


def test_the_second_length_can_come_after_the_check():
    assert len(judge(PaddingChangesOutput, [MET, CHANGED, *inputs(38, 31)])) == 1


def test_batches_of_one_length_are_quiet():
    assert not judge(PaddingChangesOutput, [MET, *inputs(38, 38), CHANGED])


def test_a_model_that_leaves_padding_out_is_clear():
    same = PaddingCompared(model=1, argument="tokens", length=38, trimmed=20, samples=8, share=1e-7, site=CALL)
    assert not judge(PaddingChangesOutput, [MET, *inputs(38, 31), same])
    run, rule = Progress(), PaddingChangesOutput()
    assert rule.unobserved(run) == PaddingCompared.absent
    run.note(same)
    rule.observe(same, run)
    assert rule.unobserved(run) == ""


def test_a_state_is_named():
    state = PaddingCompared(
        model=1, argument="tokens", length=38, trimmed=20, samples=8, share=0.7, changes=True, state=1, site=CALL
    )
    (finding,) = judge(PaddingChangesOutput, [MET, *inputs(38, 35), state])
    assert finding.primary.label.endswith("left out: other states")


def test_the_largest_value_of_convolutions_is_a_convention():
    (finding,) = judge(PaddingChangesOutput, [MET, *inputs(38, 35), replace(CHANGED, pooled=True)])
    assert finding.confidence is Confidence.LOW
