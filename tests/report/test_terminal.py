"""Snapshots at fixed width. To renew them: TRUESTEP_UPDATE_SNAPSHOTS=1 pytest tests/report"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from runs import CLEAR, KEPT, LONG, MIXED, PLAIN, RUNS

from truestep.events import Site
from truestep.findings import Confidence, Mark, Outcome, Summary, Verdict
from truestep.report import closing, render

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", RUNS)
def test_text_is_as_it_was(name, width):
    text = render(RUNS[name], "text", width=width)
    path = SNAPSHOTS / f"{name}-{width}.txt"
    if os.environ.get("TRUESTEP_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 97, 120])
@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_wider_than_asked_for(name, width):
    assert max(len(line) for line in render(RUNS[name], "text", width=width).splitlines()) <= width


@pytest.mark.parametrize("name", RUNS)
def test_colours_change_nothing_but_colours(name):
    coloured = render(RUNS[name], "text", width=100, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(RUNS[name], "text", width=100)


def test_underline_stands_under_the_expression_also_after_tabs_and_letters_of_two_bytes():
    lines = render(Summary("train.py", "finished", 313, (LONG,)), width=100).splitlines()
    position = next(i for i, line in enumerate(lines) if line.startswith("46 | "))
    begin = lines[position + 1].index("^")
    length = lines[position + 1].count("^")
    assert lines[position][begin : begin + length] == "optimizer.step()"


@pytest.mark.parametrize("column", range(0, 400, 7))
def test_long_line_is_cut_around_the_expression(column):
    text = "x" * column + "step()" + "y" * 300
    Path("long.py").write_text(text + "\n", encoding="utf-8")
    finding = replace(LONG, primary=Mark(Site("long.py", 1, column, 1, column + 6), "here"))
    lines = render(Summary("long.py", "finished", 1, (finding,)), width=80).splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith("1 | "))
    begin = lines[row + 1].index("^")
    assert lines[row][begin : begin + lines[row + 1].count("^")] == "step()"
    assert "…" in lines[row]
    assert len(lines[row]) <= 80


def test_wide_characters_count_two_columns():
    Path("wide.py").write_text('name = "深層学習"; step()\n', encoding="utf-8")
    begin = len('name = "深層学習"; '.encode())
    finding = replace(LONG, primary=Mark(Site("wide.py", 1, begin, 1, begin + 6), "here"))
    lines = render(Summary("wide.py", "finished", 1, (finding,)), width=80).splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith("1 | "))
    assert lines[row + 1].index("^") == len('1 | name = "深層学習"; ') + 4


def test_missing_file_leaves_the_rest():
    finding = replace(MIXED, primary=Mark(Site("gone.py", 41, 8, 41, 24), "step 1"), related=())
    text = render(Summary("gone.py", "finished", 313, (finding,)), width=80)
    assert "--> gone.py:41:9\n   = note: step 1\n   = seen: 312 of 313 steps" in text


def test_site_without_columns_underlines_the_whole_line():
    finding = replace(MIXED, primary=Mark(Site("train.py", 41), "step 1"), related=())
    text = render(Summary("train.py", "finished", 313, (finding,)), width=80)
    assert "--> train.py:41\n41 |         optimizer.step()\n   |         ^^^^^^^^^^^^^^^^ step 1\n" in text


def test_absolute_paths_below_the_working_directory_are_shown_relative(programs):
    site = replace(MIXED.primary.site, path=str(programs / "train.py"))
    text = render(Summary("train.py", "finished", 313, (replace(MIXED, primary=Mark(site, "")),)), width=80)
    assert "--> train.py:41:9" in text
    outside = replace(site, path=str(programs.parent / "x.py"))
    text = render(Summary("train.py", "finished", 313, (replace(MIXED, primary=Mark(outside, "")),)), width=200)
    assert f"--> {programs.parent / 'x.py'}:41:9" in text


def test_same_failure_on_several_ranks_is_one_failure():
    seen = tuple(replace(MIXED, rank=rank) for rank in range(4))
    text = render(Summary("train.py", "finished", 313, seen, CLEAR, ranks=4))
    assert text.count("error[missing-zero-grad]") == 1
    assert "ranks 0-3; confidence high" in text
    assert "1 failure found" in text
    assert "4 ranks were watched" in text


def test_low_confidence_and_suppressed_findings_are_counted_and_not_shown():
    hidden = (replace(MIXED, suppressed=True), replace(PLAIN, confidence=Confidence.LOW))
    text = render(Summary("train.py", "finished", 313, hidden, CLEAR))
    assert text.startswith(
        "no failure found, 1 suppressed, 1 of low confidence not shown (layers-in-plain-container), "
    )
    assert "error[" not in text


def test_order_of_reasons_is_theirs_and_each_stands_once():
    assert "9 not observed (no scheduler, no AMP, no checkpoint in this run)" in render(RUNS["one"], width=120)


def test_reasons_of_two_parts_are_taken_apart():
    verdicts = [Verdict("a", Outcome.NOT_OBSERVED, "no loss, no tape"), Verdict("b", Outcome.NOT_OBSERVED, "no tape")]
    assert "2 not observed (no loss, no tape in this run)" in render(
        Summary("x.py", "finished", 3, (), tuple(verdicts))
    )


@pytest.mark.parametrize("how", ["crashed", "interrupted", "stopped", "exited"])
def test_run_that_did_not_finish_says_so(how):
    text = render(Summary("train.py", how, 1, (MIXED,)), width=120)
    assert "after 1 step" in text
    assert ("rules about whole runs say nothing" in text) is (how != "exited"), "some of them take sys.exit for an end"


def test_finished_run_without_steps_says_so():
    text = render(Summary("train.py", "finished", 0, (MIXED,), torch="2.13.0"))
    assert "note: no optimizer step was seen\n" in text


def test_marks_on_one_line_share_it():
    lines = render(Summary("train.py", "finished", 313, (KEPT,))).splitlines()
    assert sum("totals.append(" in line and line.startswith("43 |") for line in lines) == 1


def test_control_characters_of_the_source_do_not_reach_the_terminal():
    Path("esc.py").write_text("x = '\x1b[31m'; step()\n", encoding="utf-8")
    finding = replace(MIXED, primary=Mark(Site("esc.py", 1, 14, 1, 20), "here"), related=())
    assert "\x1b" not in render(Summary("esc.py", "finished", 1, (finding,)))


def test_the_line_of_counts_names_the_reasons_that_most_rules_have():
    rare = [Verdict(f"rare-{number}", Outcome.NOT_OBSERVED, f"no thing {number}") for number in range(9)]
    common = [Verdict(f"common-{number}", Outcome.NOT_OBSERVED, "no scheduler") for number in range(2)]
    line = closing.headline(Summary("train.py", "finished", steps=1, verdicts=(*rare, *common)))
    named = ", ".join(f"no thing {number}" for number in range(5))
    assert line.endswith(f"11 not observed ({named}, no scheduler and 4 other reasons in this run)")
