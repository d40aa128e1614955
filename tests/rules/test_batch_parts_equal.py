from truestep.events import (
    BackwardEnded,
    LossComputed,
    LossRead,
    ModelMet,
    PartnersScored,
    PartsCompared,
    RunEnded,
    Site,
)
from truestep.findings import Confidence
from truestep.rules.batch_parts_equal import BatchPartsEqual
from truestep.testing import judge

CALL, MADE = Site("train.py", 12), Site("data.py", 40)


def parts(*equal, one="s", other="s2", made=MADE):
    return [PartsCompared(model=1, one=one, other=other, equal=same, made=made, site=CALL) for same in equal]


def test_equal_parts_are_named_where_they_are_made():
    (finding,) = judge(BatchPartsEqual, parts(True, True, True))
    assert finding.primary.site == MADE
    assert [mark.site for mark in finding.related] == [CALL]
    assert finding.message == "`s` and `s2` have equal rows in every batch"
    assert finding.confidence is Confidence.MEDIUM


def test_equal_halves_of_an_unnamed_argument_are_named_at_the_call():
    (finding,) = judge(BatchPartsEqual, parts(True, True, True, one="first half", other="second half", made=None))
    assert finding.primary.site == CALL
    assert finding.message == "the two halves of a batch have equal rows in every batch"


def test_parts_that_once_differ_are_quiet():
    assert judge(BatchPartsEqual, parts(True, True, True, False)) == []
    assert judge(BatchPartsEqual, parts(False, True, True, True)) == []


def test_two_steps_are_too_few():
    assert judge(BatchPartsEqual, parts(True, True)) == []


def test_small_batches_are_counted_by_their_rows():
    few = [PartsCompared(model=1, one="s", other="s2", rows=5, made=MADE, site=CALL)]
    assert judge(BatchPartsEqual, few * 4) == []
    (finding,) = judge(BatchPartsEqual, few * 5)
    assert finding.seen.count == 5


LOSS = Site("train.py", 20)


def contrast(*itself, root="NllLossBackward0", beside=None):
    """Return the events of contrastive losses in which partners are the samples themselves, and their passes."""
    events = []
    for one in itself:
        losses = [LossComputed(kind="cross_entropy", input_from="DivBackward0", site=site) for site in (LOSS, beside)]
        events += [losses[0], PartnersScored(site=LOSS, rows=32, itself=one), *([losses[1]] if beside else [])]
        events += [LossRead(value=1.0, root=root), BackwardEnded()]
    probe = [LossComputed(kind="cross_entropy", input_from="AddmmBackward0", site=CALL)]
    return [*events, *probe, LossRead(value=1.0, root="NllLossBackward0"), BackwardEnded(), RunEnded(how="finished")]


def test_partners_that_are_the_samples_themselves():
    (finding,) = judge(BatchPartsEqual, contrast(True, True, True))
    assert finding.primary.site == LOSS
    assert finding.message == "the partner of each sample in the contrastive loss is the sample itself"


def test_scores_with_themselves_beside_another_term_or_other_partners():
    assert judge(BatchPartsEqual, contrast(True, True, True, root="AddBackward0")) == []
    assert judge(BatchPartsEqual, contrast(True, True, True, beside=CALL)) == []
    assert judge(BatchPartsEqual, contrast(True, True, True, False)) == []
    assert judge(BatchPartsEqual, contrast(True, True)) == []


def test_two_passes_of_a_model_with_dropout_are_quiet():
    for kinds, count in (((), 1), (("Dropout",), 0)):
        met = ModelMet(model=1, name="net", parameters=(1,), sensitive=kinds)
        steps = [PartsCompared(model=1, one="first", other="second", rows=16)] * 4
        assert len(judge(BatchPartsEqual, [met, *steps])) == count
