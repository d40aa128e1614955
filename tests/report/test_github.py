import re
from dataclasses import replace
from pathlib import Path

from runs import KEPT, MIXED, RUNS

from truestep.events import Site
from truestep.findings import Mark, Summary
from truestep.report import render


def command(finding):
    return render(Summary("train.py", "finished", 313, (finding,)), "github").splitlines()[0]


def test_every_failure_is_one_command_and_counts_follow():
    lines = render(RUNS["many"], "github").splitlines()
    assert [line.split(" ")[0] for line in lines[:4]] == ["::error", "::error", "::warning", "::notice"]
    assert not any(line.startswith("::") for line in lines[4:])
    assert lines[4].startswith("4 failures found")


def test_place_is_given_in_characters_counted_from_one():
    assert command(MIXED).startswith(
        "::error file=train.py,line=41,endLine=41,col=9,endColumn=25,title=truestep%3A missing-zero-grad::optimizer"
    )


def test_columns_are_left_out_where_an_expression_has_several_lines():
    assert command(KEPT).startswith("::notice file=train.py,line=43,endLine=45,title=")


def test_message_is_escaped():
    text = command(replace(MIXED, message="100% of\r\nsteps, all: bad"))
    assert "::100%25 of%0D%0Asteps, all: bad%0A" in text


def test_properties_are_escaped():
    name = "a,b:c%d.py"
    Path(name).write_text("step()\n", encoding="utf-8")
    text = command(replace(MIXED, primary=Mark(Site(name, 1, 0, 1, 6), "")))
    assert "file=a%2Cb%3Ac%25d.py,line=1" in text


def test_message_carries_cost_and_help_on_lines_of_their_own():
    parts = re.split("%0A", command(MIXED))
    assert parts[-3:] == [
        "cost: gradient norm is 41x the true one by step 100",
        "help: call `optimizer.zero_grad()` before `loss.backward()`",
        "more: truestep explain missing-zero-grad",
    ]
