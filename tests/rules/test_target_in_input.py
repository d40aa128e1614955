"""Outputs that depend on their targets are reported where later tokens arrive; honest models are not."""

from truestep.events import CountedRead, ModelMet, OptimizerStepped, Site, TargetsCompared
from truestep.rules.target_in_input import TargetInInput
from truestep.testing import judge

MET = ModelMet(model=1, name="model", parameters=(1, 2))
CALL, LOSS, LAYER = Site("train.py", 7), Site("train.py", 8), Site("model.py", 20)


def compared(**facts: object) -> TargetsCompared:
    return TargetsCompared(model=1, site=CALL, loss=LOSS, **facts)  # type: ignore[arg-type]


def test_a_layer_that_reads_ahead_is_reported():
    (finding,) = judge(TargetInInput, [MET, compared(shift=1, reads=True, cause=LAYER)])
    assert finding.primary.site == LAYER
    assert [mark.site for mark in finding.related] == [LOSS]
    assert "mask" in finding.help


def test_targets_that_are_not_shifted_are_reported_at_the_loss():
    (finding,) = judge(TargetInInput, [MET, compared(reads=True)])
    assert finding.primary.site == LOSS
    assert "shift" in finding.help


def test_targets_in_another_order_are_reported_at_the_loss():
    (finding,) = judge(TargetInInput, [MET, compared(shift=1, crossed=True)])
    assert finding.primary.site == LOSS
    assert "order" in finding.message


def test_a_model_that_was_honest_once_is_quiet():
    honest, reads = compared(shift=1), compared(shift=1, reads=True)
    assert judge(TargetInInput, [MET, honest]) == []
    assert judge(TargetInInput, [MET, honest, reads]) == []
    assert judge(TargetInInput, [MET, reads, honest]) == []


def test_targets_that_are_shifted_twice_are_reported_at_the_loss():
    twice = compared(shift=2)
    (finding,) = judge(TargetInInput, [MET, *[twice] * 3])
    assert (finding.primary.site, finding.seen.count) == (LOSS, 3)
    assert finding.message == "`model` is trained on the token after the next one: its targets are shifted twice"
    assert judge(TargetInInput, [MET, twice, twice]) == []
    assert judge(TargetInInput, [MET, twice, compared(shift=1), twice, twice]) == []


def test_a_target_that_is_a_feature_is_reported_where_it_is_made():
    made = Site("data.py", 5)
    (finding,) = judge(TargetInInput, [MET, compared(column=3, reads=True, made=made)])
    assert finding.primary.site == made
    assert "feature 3" in finding.message
    assert [mark.site for mark in finding.related] == [LOSS, CALL]


STEP = OptimizerStepped(optimizer=1, site=Site("train.py", 10))


def test_a_mask_that_leaves_out_the_masked_tokens_is_reported_at_the_loss():
    kept = CountedRead(kind="kept", value=29, made=LOSS, site=Site("train.py", 9))
    (finding,) = judge(TargetInInput, [MET, *[kept, STEP] * 3])
    assert (finding.primary.site, finding.seen.count) == (LOSS, 3)
    assert "masked ones" in finding.message
    assert "29" in finding.primary.label
    assert judge(TargetInInput, [MET, *[kept, STEP] * 2]) == []
    other = CountedRead(kind="", site=Site("train.py", 9))
    assert judge(TargetInInput, [MET, *[kept, STEP] * 3, other]) == []
    (finding,) = judge(TargetInInput, [MET, compared(reads=True), *[kept, STEP] * 3, compared(reads=True)])
    assert "masked ones" in finding.message
