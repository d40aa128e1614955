"""The sentence before the counts, where a run showed less than a whole training: in every format."""

import json
from dataclasses import replace

import pytest
from runs import MIXED, VERDICTS

from truestep.events import Site
from truestep.findings import Chance, Coverage, Outcome, PostMortem, Summary, Verdict
from truestep.findings import Mark as Marked
from truestep.report import closing, coverage, render
from truestep.report import json as report_json
from truestep.report import sarif as report_sarif

UNSEEN = tuple(Verdict(f"unseen-{number}", Outcome.NOT_OBSERVED, "no backward pass") for number in range(3))
SOME = (*UNSEEN, Verdict("clear-1", Outcome.CLEAR))
NO_TORCH = Summary("train.py", "finished", 0, coverage=Coverage(called=False, backward=False))
IMPORTED = replace(NO_TORCH, torch="2.13.0", verdicts=UNSEEN)
WHOLE = Summary("train.py", "finished", 313, verdicts=SOME, torch="2.13.0")
ERROR = Coverage(called=False, backward=False, error="ModuleNotFoundError: No module named 'tyro'")
DIED = PostMortem("shapes", "RuntimeError: mat1", "two layers do not fit", Marked(None, "fails here"))
SPAWNED = Coverage(called=False, backward=False, processes=2, started=Site("mp.py", 13))

HEADLINES = [
    (NO_TORCH, "nothing was checked: the script never imported torch", "nothing", "torch-not-imported"),
    (
        replace(NO_TORCH, how="crashed", coverage=ERROR),
        "nothing was checked: the script ended with ModuleNotFoundError before it imported torch",
        "nothing",
        "crashed-before-first-step",
    ),
    (
        replace(IMPORTED, how="crashed", coverage=ERROR),
        "nothing was checked: the script ended with ModuleNotFoundError before its first step",
        "nothing",
        "crashed-before-first-step",
    ),
    (
        replace(IMPORTED, how="exited"),
        "nothing was checked: the script called sys.exit before its first step",
        "nothing",
        "exited-before-first-step",
    ),
    (IMPORTED, "nothing was checked: no model was called", "nothing", "no-model-call"),
    (
        replace(IMPORTED, verdicts=SOME, coverage=Coverage(backward=False)),
        "little was checked: no backward pass was seen",
        "little",
        "no-backward-pass",
    ),
    (
        replace(IMPORTED, verdicts=SOME, coverage=Coverage()),
        "little was checked: no optimizer step was seen",
        "little",
        "no-optimizer-step",
    ),
    (
        replace(IMPORTED, coverage=SPAWNED),
        "nothing was checked: no optimizer step in this process, "
        "and the 2 processes started at mp.py:13 are not watched",
        "nothing",
        "other-processes",
    ),
    (
        replace(IMPORTED, coverage=replace(SPAWNED, processes=1, started=None)),
        "nothing was checked: no optimizer step in this process, and the process started is not watched",
        "nothing",
        "other-processes",
    ),
    (
        replace(NO_TORCH, internal_errors=("Traceback\nValueError: x",)),
        "nothing was checked: watching failed to start",
        "nothing",
        "internal-error",
    ),
    (
        replace(WHOLE, how="crashed", steps=1, coverage=Coverage(error="RuntimeError: x")),
        "no failure found in the 1 step before the script ended with RuntimeError",
        "part",
        "crashed",
    ),
    (
        replace(WHOLE, how="interrupted", steps=40),
        "no failure found in the 40 steps before the script was interrupted",
        "part",
        "interrupted",
    ),
    (
        replace(WHOLE, how="stopped", steps=200),
        "no failure found in the 200 steps before the script was stopped",
        "part",
        "stopped",
    ),
    (replace(WHOLE, steps=3), "no failure found in 3 steps", "part", "few-steps"),
    (
        replace(WHOLE, coverage=Coverage(chance=Chance(10, 2.31, 300))),
        "the loss never left chance (about 2.31 at step 300, as for a guess among 10 classes), "
        "and no failure was found",
        "whole",
        "loss-at-chance",
    ),
    (
        replace(WHOLE, coverage=Coverage(fed=False)),
        "no optimizer step used a gradient, and no failure was found",
        "little",
        "no-gradient-used",
    ),
]


@pytest.mark.parametrize(
    ("summary", "words", "extent", "slug"), HEADLINES, ids=[row[3] + "-" + row[2] for row in HEADLINES]
)
def test_words_before_the_counts(summary, words, extent, slug):
    assert closing.headline(summary).startswith(words)
    document = report_json.document(summary)
    assert document["headline"] == closing.headline(summary)
    assert document["coverage"]["extent"] == extent
    assert [limit["slug"] for limit in document["coverage"]["limits"]] == [slug]
    run = report_sarif.log(summary)["runs"][0]
    assert run["properties"]["extent"] == extent
    said = [entry["message"]["text"] for entry in run["invocations"][0]["toolExecutionNotifications"]]
    assert coverage.limits(summary)[0].text in said
    commands = render(summary, "github").splitlines()
    assert commands[0].startswith("::warning title=truestep::") is (extent in ("nothing", "little"))
    assert json.loads(render(summary, "json")) == document


def test_whole_training_is_clear_in_green():
    assert closing.headline(WHOLE).startswith("no failure found, 1 rule clear, 3 not observed")
    assert coverage.limits(WHOLE) == []
    assert render(WHOLE, colour=True).startswith("\x1b[1;32mno failure found")
    assert not render(replace(WHOLE, steps=3), colour=True).startswith("\x1b[1;32m")


def test_reasons_are_not_listed_where_nothing_was_checked():
    assert "not observed" not in closing.headline(IMPORTED)
    assert "not observed" in closing.headline(replace(IMPORTED, verdicts=SOME))


def test_failures_stand_first_and_the_limits_are_notes():
    summary = replace(WHOLE, how="crashed", steps=12, findings=(MIXED,), verdicts=VERDICTS)
    assert closing.headline(summary).startswith("1 failure found, ")
    summary = replace(summary, coverage=Coverage(error="KeyError: 'x'", chance=Chance(10, 2.3, 300)))
    assert closing.notes(summary) == [
        "the script ended with KeyError after 12 steps; rules about whole runs say nothing",
        "the loss never left chance (about 2.3 at step 300, as for a guess among 10 classes)",
    ]


def test_post_mortem_is_the_one_thing_known_before_the_first_step():
    died = replace(IMPORTED, how="crashed", post_mortem=DIED, coverage=replace(ERROR, error="RuntimeError: mat1"))
    assert closing.headline(died) == "no other failure found before the first step"
    assert closing.notes(died) == [
        "the script ended with RuntimeError before its first step; rules about whole runs say nothing"
    ]
    later = replace(died, steps=4, verdicts=SOME)
    assert closing.headline(later).startswith(
        "no other failure found in the 4 steps before the script ended with RuntimeError, 1 rule clear"
    )
