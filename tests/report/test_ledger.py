"""The ledger in reports: facts of the run, with a mark where a finding belongs to them."""

import json
from dataclasses import replace
from pathlib import Path

from truestep.findings import LedgerLine, Summary
from truestep.report import render
from truestep.rules import Progress, all_rules
from truestep.supervision.exchange import from_dict, to_dict

LINES = (
    LedgerLine("steps", "4,400 of Adam (train.py:33)", {"lines": [{"steps": 4400}]}),
    LedgerLine("gradients", "4,400 backward passes (train.py:32), 4,399 used again", {}, ("missing-zero-grad",)),
)
SUMMARY = Summary("train.py", "finished", steps=4400, ledger=LINES)


def test_lines_with_a_finding_are_marked():
    assert render(SUMMARY).splitlines()[:3] == [
        "  steps       4,400 of Adam (train.py:33)",
        "  gradients ! 4,400 backward passes (train.py:32), 4,399 used again",
        "",
    ]


def test_long_facts_are_cut_to_one_line():
    line = LedgerLine("steps", ", ".join(["1,000 of Adam (train.py:33)"] * 9))
    shown, *_ = render(Summary("train.py", "finished", steps=1, ledger=(line,)), width=80).splitlines()
    assert len(shown) <= 80
    assert shown.endswith("\N{HORIZONTAL ELLIPSIS}")


def test_a_run_without_facts_has_no_ledger():
    assert render(Summary("train.py", "finished", steps=0)).count("\n") == 1


def test_json_has_all_facts():
    first, second = json.loads(render(SUMMARY, "json"))["ledger"]
    assert first == {"account": "steps", "text": LINES[0].text, "rules": [], "facts": {"lines": [{"steps": 4400}]}}
    assert second["rules"] == ["missing-zero-grad"]


def test_paths_are_shown_as_in_the_rest_of_the_report():
    site = {"path": str(Path.cwd() / "lab" / "train.py"), "line": 3, "function": "<module>"}
    line = LedgerLine("steps", "3 of Adam", {"lines": [{"site": site}]})
    ((shown,),) = [
        one["facts"]["lines"] for one in json.loads(render(replace(SUMMARY, ledger=(line,)), "json"))["ledger"]
    ]
    assert shown["site"] == site | {"path": "lab/train.py"}


def test_the_ledger_survives_the_exchange_between_ranks():
    assert from_dict(to_dict(SUMMARY)).ledger == LINES


def test_each_rule_names_an_account():
    planned = {"calls", "loss", "samples", "randomness", "rate", "state", "time"}
    names = {account.name for account in Progress().accounts} | planned
    assert {rule.account for rule in all_rules().values()} <= names
