"""The ledger in reports: facts of the run, with a mark where a finding belongs to them."""

import json
from dataclasses import replace
from pathlib import Path

from truestep.findings import LedgerLine, Summary
from truestep.report import render
from truestep.rules import Progress, all_rules
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.ranks import merge

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


def shown(*texts: str) -> list[str]:
    """Return the lines of the ledger with these texts, 80 columns wide."""
    lines = tuple(LedgerLine("calls", text) for text in texts)
    return render(Summary("train.py", "finished", steps=1, ledger=lines), width=80).splitlines()[: len(texts)]


def test_long_facts_are_cut_after_a_whole_fact():
    (line,) = shown(", ".join(f"1,000 of Adam{number} (part{number}.py:33)" for number in range(9)))
    assert len(line) <= 80
    assert line.endswith("1,000 of Adam2, 1,000 of Adam3 …")


def test_a_fact_that_fills_half_of_the_line_is_cut_after_a_word():
    (line,) = shown("320 training in train mode, 8 calls of several models without any backward passes or gradients")
    assert line.endswith(" models without any …")


def test_one_long_fact_is_cut_anywhere():
    (line,) = shown("x" * 100)
    assert len(line) <= 80
    assert line.endswith("x …")


def test_a_long_line_is_shown_without_the_name_of_the_only_file_then_without_places():
    calls = "4,400 training, train mode; 1 evaluation, eval mode (digits_accident.py:43)"
    assert shown(calls)[0].endswith("eval mode (line 43)")
    assert shown(calls, "12 of Adam (other.py:3)")[0].endswith("eval mode")


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


def of_ranks(*texts: str) -> Summary:
    parts = {
        rank: Summary("train.py", "finished", steps=9, ledger=(LedgerLine("calls", text), LedgerLine("loss", text)))
        for rank, text in enumerate(texts)
    }
    return merge(parts, len(parts))


def test_ranks_that_differ_have_a_line_below_their_account():
    merged = of_ranks("9 training; 3 evaluations", "9 training", "9 training", "8 training")
    assert [line.facts for line in merged.ledger] == [
        {"ranks": {"1": "9 training", "2": "9 training", "3": "8 training"}},
        {},
    ]
    assert render(merged).splitlines()[:4] == [
        "  calls   9 training; 3 evaluations",
        "          ranks 1, 2: 9 training",
        "          rank 3: 8 training",
        "  loss    9 training; 3 evaluations",
    ]
    assert of_ranks("9 training", "9 training").ledger[0].facts == {}


def test_a_ledger_of_ranks_has_at_most_ten_lines():
    merged = of_ranks(*(f"{count} training" for count in range(20)))
    report = render(merged).splitlines()
    assert report.index("") == 10


def test_a_failure_that_the_comparison_of_ranks_shows_marks_its_account():
    line = LedgerLine("parameters", "2 of 2 trained")
    facts = {
        "group": [0, 1],
        "reads": [[step, 1, [["weight", True, [1.0]]]] for step in (1, 2)],
        **dict.fromkeys(("passed_by", "called", "stepped")),
        "optimizer": "opt",
        "outside": [],
        "recast": [],
        "passes": 1.0,
        "by_hand": False,
        "divided": False,
        "world_size": 2,
        "rates": {},
    }
    other = facts | {"reads": [[step, 1, [["weight", True, [2.0]]]] for step in (1, 2)]}
    parts = {
        rank: Summary("train.py", "finished", steps=9, ledger=(line,), rank_facts={"ranks-diverge": fact})
        for rank, fact in enumerate((facts, other))
    }
    assert merge(parts, 2).ledger[0].rules == ("ranks-diverge",)
