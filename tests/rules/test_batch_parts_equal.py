from truestep.events import PartsCompared, Site
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
