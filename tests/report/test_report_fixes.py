"""Fixes in reports: in JSON and SARIF, after the report of a run, and in its page."""

import io
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Severity, Summary
from truestep.report import fixes, render
from truestep.report.page.findings import cards
from truestep.report.page.write_page import render as render_page
from truestep.timeline import Timeline

TEXT = (
    "for x, y in loader:\n    logits = model.forward(x)\n    f(logits, y).backward(retain_graph=True)\n    opt.step()\n"
)
FIXED = TEXT.replace("model.forward(x)", "model(x)").replace("retain_graph=True", "")


def finding(path, rule, line, column):
    site = Site(str(path), line, column)
    return Finding(rule, Severity.WARNING, Confidence.HIGH, "it fails", Mark(site, "here"), help="correct it")


@pytest.fixture
def summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(TEXT, encoding="utf-8")
    found = (
        finding(file, "forward-called-directly", 2, 13),
        finding(file, "retain-graph-in-loop", 3, 4),
        finding(file, "loss-at-chance", 3, 4),
    )
    return Summary("train.py", "finished", 9, found)


def test_json_has_the_fix_or_null(summary):
    report = json.loads(render(summary, "json"))
    schema = json.loads(Path(fixes.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(report)
    first, second, third = (one["fix"] for one in report["findings"])
    assert first["title"] == "Call `model(...)` instead of `model.forward(...)`"
    assert first["edits"] == [{"line": 2, "lines": 1, "text": "    logits = model(x)\n"}]
    assert second["diff"].splitlines()[-2:] == ["+    f(logits, y).backward()", "     opt.step()"]
    assert third is None


def test_sarif_replaces_whole_lines(summary):
    (run,) = json.loads(render(summary, "sarif"))["runs"]
    (fix,) = run["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "train.py"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 1, "endLine": 3, "endColumn": 1},
            "insertedContent": {"text": "    logits = model(x)\n"},
        }
    ]
    assert "fixes" not in run["results"][2]


def test_fixes_are_shown_as_one_diff_for_a_file(summary):
    out = io.StringIO()
    said = fixes.offered(summary.findings, out, edit=False, unsafe=False)
    text = out.getvalue()
    assert text.startswith("\nfix[forward-called-directly]: Call `model(...)` instead of")
    assert text.count("--- a/train.py\n+++ b/train.py\n") == 1
    assert "+    logits = model(x)\n+    f(logits, y).backward()\n" in text
    assert said == "2 fixes shown; --write makes them"
    assert Path("train.py").read_text(encoding="utf-8") == TEXT


def test_fixes_are_made(summary):
    out = io.StringIO()
    assert fixes.offered(summary.findings, out, edit=True, unsafe=False) == "2 fixes made in train.py"
    assert Path("train.py").read_text(encoding="utf-8") == FIXED
    assert fixes.offered(summary.findings[2:], io.StringIO(), edit=True, unsafe=False) == (
        "no fix is certain for these findings"
    )


def test_a_diff_is_colored_on_request(summary):
    found = fixes.offers(summary.findings, unsafe=True)
    assert "\x1b[32m+    logits = model(x)\x1b[0m\n" in fixes.render(found, colour=True)
    assert "\x1b" not in fixes.render(found, colour=False)


def test_a_file_that_was_changed_during_the_run_is_not_fixed(summary):
    later = time.time() + 60
    os.utime("train.py", (later, later))
    out = io.StringIO()
    fixes.offered(summary.findings, out, edit=True, unsafe=True, begun=time.time())
    assert out.getvalue() == "\nno fix for train.py: the file was changed after the run began\n"
    assert Path("train.py").read_text(encoding="utf-8") == TEXT
    timeline = Timeline(read_at=time.time())
    assert [card.fix for card in cards(replace(summary, timeline=timeline))] == [None] * 3


def test_a_suppressed_finding_has_no_fix(summary):
    assert fixes.fix_of(replace(summary.findings[0], suppressed=True)) is None
    assert fixes.offers([replace(summary.findings[0], suppressed=True)], unsafe=True) == []


def test_a_mistake_in_a_fix_does_not_end_a_report(summary, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(fixes, "propose_for", broken)
    monkeypatch.setattr(fixes, "apply_all", broken)
    Path("train.py").write_text(TEXT + "\n", encoding="utf-8")
    assert json.loads(render(summary, "json"))["findings"][0]["fix"] is None
    assert fixes.offers(summary.findings, unsafe=True) == []


def test_the_page_shows_the_fix_on_the_lines_of_the_user(summary):
    card = cards(summary)[0]
    assert card.fix is not None
    shown = [(sign, number, "".join(piece.text for piece in pieces)) for sign, number, pieces in card.fix.diff]
    assert shown == [
        (" ", 1, "for x, y in loader:"),
        ("-", 2, "    logits = model.forward(x)"),
        ("+", 2, "    logits = model(x)"),
        (" ", 3, "    f(logits, y).backward(retain_graph=True)"),
        (" ", 4, "    opt.step()"),
    ]
    page = render_page([summary])
    assert page.count('class="patch"') == 2
    assert "A fix in another program" in page
    assert "The same fix in another program" in page  # of the finding without a fix
