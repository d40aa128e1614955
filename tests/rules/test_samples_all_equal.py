import pytest

from truestep.events import BatchRead, LoaderMet, RowsEqualled, Site
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


def rows(*moved, equal=True, model=1, constant=False):
    place = {"name": "x", "made": Site("train.py", 14), "site": Site("train.py", 20)}
    return [RowsEqualled(model=model, rows=16, equal=equal, constant=constant, moved=one, **place) for one in moved]


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        (rows(False, equal=False), Outcome.CLEAR),
        (rows(False, True, True), Outcome.NOT_OBSERVED),
        (rows(False, False, False, False), Outcome.NOT_OBSERVED),
        ([*rows(False, equal=False), *rows(False, model=2, constant=True)], Outcome.NOT_OBSERVED),
        ([*rows(False, constant=True), *rows(False, equal=False)], Outcome.CLEAR),
        (rows(False, True, True, True), Outcome.FOUND),
        (reads(0), Outcome.CLEAR),
        ([*reads(0), *rows(False, True)], Outcome.NOT_OBSERVED),
    ],
)
def test_rows_and_batches_are_evidence_each(events, outcome):
    rule, run = SamplesAllEqual(), Progress()
    for event in [MET, *events]:
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is outcome


def test_equal_rows_of_an_input_are_named_where_they_are_made():
    (finding,) = judge(SamplesAllEqual, rows(False, True, True, True))
    assert finding.primary.site == Site("train.py", 14)
    assert finding.message == "all 16 samples of a batch are equal"


def test_equal_rows_that_never_change_or_once_differ_are_quiet():
    assert judge(SamplesAllEqual, rows(False, False, False, False)) == []
    assert judge(SamplesAllEqual, rows(False, True, True)) == []
    assert judge(SamplesAllEqual, [*rows(False, True, True, True), *rows(False, equal=False)]) == []


@pytest.mark.parametrize(
    ("weights", "found"), [((3, 900), True), ((720, 900), False), ((3, 20), False), ((0, 0), False)]
)
def test_a_sampler_with_a_weight_for_each_class_is_found(weights, found):
    met = LoaderMet(loader=1, dataset=1, samples=900, weights=weights, site=SITE)
    findings = judge(SamplesAllEqual, [met])
    assert [finding.primary.label for finding in findings] == ["draws only the first 3 samples"] * found
