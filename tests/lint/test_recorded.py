"""Suspicions compared with a run: confirmed, shown to be harmless, or neither."""

from dataclasses import replace
from pathlib import Path

import pytest

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Summary, Verdict
from truestep.lint.engine import IN_SYNTAX
from truestep.lint.recorded import compared, files_of

PATH = str(Path("train.py").absolute())


def finding(rule="clip-after-step", path="train.py", seen=IN_SYNTAX):
    site = Site(path, 10, 4, 10, 20)
    return Finding(rule, Severity.ERROR, Confidence.MEDIUM, "a failure", Mark(site, "here"), seen=seen)


def summary(outcome, *findings):
    return Summary(PATH, "finished", 50, findings=findings, verdicts=(Verdict("clip-after-step", outcome),))


def test_clear_rule_silences_the_suspicion_in_files_that_ran():
    kept, cleared = compared([finding()], summary(Outcome.CLEAR), frozenset({PATH}))
    assert (kept, len(cleared)) == ((), 1)


@pytest.mark.parametrize(
    ("outcome", "files"), [(Outcome.CLEAR, frozenset()), (Outcome.NOT_OBSERVED, frozenset({PATH}))]
)
def test_suspicion_stays_where_the_run_says_nothing(outcome, files):
    kept, cleared = compared([finding()], summary(outcome), files)
    assert (kept, cleared) == ((finding(),), ())


def test_suspicion_that_the_run_shows_says_so():
    seen = replace(finding(path=PATH, seen=Seen(48, 50, first_step=1)), confidence=Confidence.HIGH, cost="no limit")
    kept, cleared = compared([finding()], summary(Outcome.FOUND, seen), frozenset({PATH}))
    assert cleared == ()
    assert (kept[0].confidence, kept[0].cost) == (Confidence.HIGH, "no limit")
    assert kept[0].related[-1] == Mark(None, "the run shows it too: 48 of 50 steps, first at step 1")


def test_finding_of_another_file_confirms_nothing():
    seen = finding(path="/elsewhere/train.py")
    kept, _ = compared([finding()], summary(Outcome.FOUND, seen), frozenset({PATH}))
    assert kept == (finding(),)


def test_cells_of_a_notebook_belong_to_it():
    path = str(Path("a.ipynb").absolute())
    _, cleared = compared([finding(path="a.ipynb:cell 4")], summary(Outcome.CLEAR), frozenset({path}))
    assert len(cleared) == 1


def test_files_are_those_that_the_record_mentions(tmp_path):
    (tmp_path / "rank-0.jsonl").write_text('{"site": {"path": "/home/me/model.py", "line": 3}}\n', encoding="utf-8")
    assert files_of(tmp_path, summary(Outcome.CLEAR)) == {PATH, str(Path("/home/me/model.py").absolute())}
