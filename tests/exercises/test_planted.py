"""Exercises with a planted failure: the script is found, its solution passes, and nothing else does."""

import time
from pathlib import Path

import pytest

from truestep.exercises import judging
from truestep.exercises.catalogue import PlantedFailure, exercises
from truestep.exercises.judging import Answer, judge_script
from truestep.rules import all_rules

PLANTED = {name: one for name, one in exercises().items() if isinstance(one, PlantedFailure)}
AT_ONCE = "sorted-desk"
"""The exercise that is run by `make test`; `make programs` runs the others."""

each = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == AT_ONCE else [pytest.mark.program]) for name in PLANTED]
)


def judged(name, text, tmp_path, seconds=judging.LIMIT_S):
    path = tmp_path / PLANTED[name].file
    path.write_text(text, encoding="utf-8")
    return judge_script(PLANTED[name], path, seconds)


@pytest.mark.program
@each
def test_the_failure_is_found_and_its_harm_shows(name, tmp_path):
    judgement = judged(name, PLANTED[name].text(), tmp_path)
    low, high = PLANTED[name].healthy
    assert judgement.answer is Answer.STILL_THERE
    assert not judgement.switched_off
    assert judgement.metric is not None
    assert not low <= judgement.metric <= high


@each
def test_the_solution_passes(name, tmp_path):
    judgement = judged(name, PLANTED[name].solution(), tmp_path)
    assert judgement.answer is Answer.MENDED, judgement


def test_the_catalogue_is_complete():
    assert len(PLANTED) >= 10
    assert len({one.account for one in PLANTED.values()}) >= 7
    assert len({one.rule for one in PLANTED.values()}) == len(PLANTED)
    for one in PLANTED.values():
        assert one.rule in all_rules()
        assert 30 <= len(one.text().splitlines()) <= 80
        assert all(one.text().count(before) == 1 for before, _ in one.mends), one.name
        shown = f"{one.name} {one.title} {one.symptom} {one.look} {one.hint}"
        assert one.rule not in shown, "the answer is not given away"


def test_the_page_names_every_exercise():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exercise.md").read_text(encoding="utf-8")
    assert not [name for name in exercises() if f"`{name}`" not in page]


@pytest.mark.program
def test_an_unrelated_edit_does_not_pass(tmp_path):
    text = PLANTED["sorted-desk"].text()
    assert judged("sorted-desk", text.replace("lr=0.1", "lr=0.02"), tmp_path).answer is Answer.STILL_THERE


@pytest.mark.program
def test_a_comment_that_allows_the_failure_does_not_pass(tmp_path):
    text = PLANTED["sorted-desk"].text()
    line = next(line for line in text.splitlines() if line.startswith("train_loader"))
    allowed = text.replace(line, f"{line}  # truestep: ignore[training-data-not-shuffled]")
    judgement = judged("sorted-desk", allowed, tmp_path)
    assert (judgement.answer, judgement.switched_off) == (Answer.STILL_THERE, True)


def test_a_script_that_no_longer_trains_does_not_pass(tmp_path):
    text = PLANTED["sorted-desk"].text().replace("range(1, 16)", "range(1, 1)")
    judgement = judged("sorted-desk", text, tmp_path)
    assert judgement.answer is Answer.UNTRAINED


def test_a_script_that_prints_the_goal_does_not_pass(tmp_path):
    assert judged("lost-best", 'print("test error: 0.5")\n', tmp_path).answer is Answer.UNTRAINED


def test_a_script_that_crashes_is_shown_with_its_traceback(tmp_path):
    judgement = judged("long-memory", "import torch\nraise ValueError('a slip')\n", tmp_path)
    assert judgement.answer is Answer.CRASHED
    assert judgement.error.endswith("ValueError: a slip")


@pytest.mark.program
def test_a_script_that_never_ends_is_stopped(tmp_path):
    begun = time.monotonic()
    judgement = judged("long-memory", "import time\nwhile True:\n    time.sleep(1)\n", tmp_path, seconds=4)
    assert judgement.answer is Answer.ENDLESS
    assert time.monotonic() - begun < 60


REPORT = {"steps": 9, "findings": [], "verdicts": [{"rule": "missing-zero-grad"}]}


def finding(rule, severity="error", suppressed=False):
    return {
        "rule": rule,
        "severity": severity,
        "suppressed": suppressed,
        "message": "a fact",
        "primary": {"site": {"line": 7}},
    }


@pytest.mark.parametrize(
    ("change", "metric", "answer"),
    [
        ({}, 0.96, Answer.MENDED),
        ({}, 0.5, Answer.METRIC),
        ({}, float("nan"), Answer.METRIC),
        ({}, None, Answer.NO_METRIC),
        ({"verdicts": []}, 0.96, Answer.STILL_THERE),
        ({"findings": [finding("missing-zero-grad")]}, 0.96, Answer.STILL_THERE),
        ({"findings": [finding("clip-after-step")]}, 0.96, Answer.ANOTHER),
        ({"findings": [finding("clip-after-step", suppressed=True)]}, 0.96, Answer.MENDED),
        ({"findings": [finding("no-grad-missing", "warning")]}, 0.96, Answer.MENDED),
    ],
)
def test_an_answer_needs_both_the_report_and_the_metric(change, metric, answer):
    assert judging._judged(PLANTED["long-memory"], REPORT | change, metric).answer is answer
