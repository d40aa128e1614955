from truestep.events import BatchRead, LoaderMet, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.samples_all_equal import SamplesAllEqual
from truestep.testing import judge

SITE = Site("train.py", 29, 9)
MET = LoaderMet(loader=1, name="loader", dataset=1, site=SITE)


def reads(*alike, loader=1):
    return [BatchRead(loader=loader, place=place, alike=rows) for place, rows in enumerate(alike)]


def test_three_batches_of_one_sample_are_found_where_the_loader_is_made():
    (finding,) = judge(SamplesAllEqual, [MET, *reads(40, 40, 40)])
    assert finding.primary.site == SITE
    assert finding.message == "`loader` returns the same sample with different labels"
    assert "all 40 samples" in finding.primary.label
    assert (finding.seen.count, finding.seen.total) == (3, 3)


def test_two_batches_are_not_enough():
    assert judge(SamplesAllEqual, [MET, *reads(40, 40)]) == []


def test_one_batch_of_different_samples_clears_the_loader():
    assert judge(SamplesAllEqual, [MET, *reads(40, 40, 40, 0, 40, 40, 40)]) == []
    assert judge(SamplesAllEqual, [MET, *reads(0, 40, 40, 40)]) == []


def test_each_loader_is_judged_by_its_own_batches():
    other = LoaderMet(loader=2, name="test_loader", dataset=2, site=SITE)
    assert judge(SamplesAllEqual, [MET, other, *reads(40, 40), *reads(40, loader=2)]) == []


def test_a_run_without_a_batch_is_not_observed():
    assert SamplesAllEqual().verdict(Progress()).outcome is Outcome.NOT_OBSERVED
