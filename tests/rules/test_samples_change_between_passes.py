"""Stored samples that were changed at least twice by one operation are reported at the line that writes."""

from truestep.events import LoaderMet, Site, StoredCompared
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.samples_change_between_passes import SamplesChangeBetweenPasses
from truestep.testing import judge

WRITES, CALL = Site("train.py", 21), Site("train.py", 50)


def compared(times: int, *, made: Site | None = WRITES, **more) -> StoredCompared:
    return StoredCompared(table="x", rows=200, times=times, factor=0.0625, site=CALL, made=made, **more)


def test_samples_that_are_changed_by_each_pass_are_reported():
    (finding,) = judge(SamplesChangeBetweenPasses, [compared(0), compared(2)])
    assert finding.primary.site == WRITES
    assert "multiplied by 0.0625" in finding.primary.label
    assert [mark.site for mark in finding.related] == [CALL]


def test_two_arrays_of_one_line_are_one_finding():
    (finding,) = judge(SamplesChangeBetweenPasses, [compared(2), compared(3)])
    assert finding.seen.count == 2


def test_without_a_line_that_writes_the_call_is_named():
    (finding,) = judge(SamplesChangeBetweenPasses, [compared(4, made=None)])
    assert finding.primary.site == CALL
    assert finding.related == ()


def test_arrays_of_a_data_set_are_named_by_their_loader():
    met = LoaderMet(loader=2, name="train_loader", dataset=1, batches=5)
    event = StoredCompared(table="dataset.images", rows=200, times=2, offset=-5.0, loader=2, site=CALL)
    (finding,) = judge(SamplesChangeBetweenPasses, [met, event])
    assert "train_loader.dataset.images" in finding.message
    assert "changed by -5" in finding.primary.label


def test_samples_that_stay_are_clear():
    assert judge(SamplesChangeBetweenPasses, [compared(0)]) == []
    rule, run = SamplesChangeBetweenPasses(), Progress()
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED
    run.note(compared(0))
    rule.observe(compared(0), run)
    assert rule.verdict(run).outcome is Outcome.CLEAR


def test_random_values_in_a_view_are_reported():
    event = StoredCompared(table="x", rows=200, times=2, random=True, site=CALL, made=WRITES)
    (finding,) = judge(SamplesChangeBetweenPasses, [event])
    assert finding.primary.site == WRITES
    assert "random values are written to a view" in finding.primary.label
