"""Suspicions compared with a run: confirmed, shown to be harmless, or neither."""

from dataclasses import replace
from pathlib import Path

import pytest

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Summary, Verdict
from truestep.lint.engine import IN_SYNTAX
from truestep.lint.recorded import Ran, compared, places_of

PATH = str(Path("train.py").absolute())
HERE = Ran([Site(PATH, 10, 4, 10, 20)])
NOWHERE = Ran([])


def finding(rule="clip-after-step", path="train.py", seen=IN_SYNTAX):
    site = Site(path, 10, 4, 10, 20)
    return Finding(rule, Severity.ERROR, Confidence.MEDIUM, "a failure", Mark(site, "here"), seen=seen)


def summary(outcome, *findings):
    return Summary(PATH, "finished", 50, findings=findings, verdicts=(Verdict("clip-after-step", outcome),))


def test_clear_rule_silences_the_suspicion_in_files_that_ran():
    kept, cleared = compared([finding()], summary(Outcome.CLEAR), HERE)
    assert (kept, len(cleared)) == ((), 1)


@pytest.mark.parametrize(
    ("outcome", "ran"),
    [
        (Outcome.CLEAR, NOWHERE),
        (Outcome.CLEAR, Ran([Site(PATH, 11)])),
        (Outcome.CLEAR, Ran([Site("/elsewhere/train.py", 10)])),
        (Outcome.NOT_OBSERVED, HERE),
    ],
)
def test_suspicion_stays_where_the_run_says_nothing(outcome, ran):
    kept, cleared = compared([finding()], summary(outcome), ran)
    assert (kept, cleared) == ((finding(),), ())


def test_suspicion_that_the_run_shows_says_so():
    seen = replace(finding(path=PATH, seen=Seen(48, 50, first_step=1)), confidence=Confidence.HIGH, cost="no limit")
    kept, cleared = compared([finding()], summary(Outcome.FOUND, seen), HERE)
    assert cleared == ()
    assert (kept[0].confidence, kept[0].cost) == (Confidence.HIGH, "no limit")
    assert kept[0].related[-1] == Mark(None, "the run shows it too: 48 of 50 steps, first at step 1")


def test_finding_of_another_file_confirms_nothing():
    seen = finding(path="/elsewhere/train.py")
    kept, _ = compared([finding()], summary(Outcome.FOUND, seen), HERE)
    assert kept == (finding(),)


def test_cells_of_a_notebook_belong_to_it():
    path = str(Path("a.ipynb").absolute())
    _, cleared = compared([finding(path="a.ipynb:cell 4")], summary(Outcome.CLEAR), Ran([Site(path, 10)]))
    assert len(cleared) == 1


def test_line_of_a_function_that_ran_is_judged():
    inside = replace(finding(), primary=Mark(Site("train.py", 10, function="Net.forward"), "here"))
    assert compared([inside], summary(Outcome.CLEAR), Ran([Site(PATH, 12, function="forward")])) == ((), (inside,))
    assert compared([inside], summary(Outcome.CLEAR), Ran([Site(PATH, 12, function="fit")])) == ((inside,), ())


def test_failure_at_another_line_confirms_nothing():
    seen = replace(finding(path=PATH), primary=Mark(Site(PATH, 30), "here"))
    assert compared([finding()], summary(Outcome.FOUND, seen), HERE)[0] == (finding(),)


def test_places_are_those_that_the_record_mentions(tmp_path):
    lines = '{"event":1,"is":"RunStarted"}\n{"site":1,"at":["/home/me/model.py",3,4,3,9,"fit"]}\n{"site":2,"at":[\n'
    (tmp_path / "rank-0.jsonl").write_text(lines, encoding="utf-8")
    ran = places_of(tmp_path)
    assert ran.passed(replace(finding(), primary=Mark(Site("/home/me/model.py", 3), "here")))
    assert not ran.passed(replace(finding(), primary=Mark(Site("/home/me/model.py", 4), "here")))
