"""`truestep lint --fix`, `--diff` and `--unsafe-fixes`: edited files, shown diffs, and the findings after them."""

import json
import sys
from io import BytesIO, TextIOWrapper

import pytest

from truestep import source
from truestep.cli import main

TWO = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
SAFE = TWO.replace(CLIP, "").replace("    optimizer.step()\n", CLIP + "    optimizer.step()\n")
ALL = SAFE.replace(", nn.Softmax(dim=1)", "")


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(source, "_overlays", {})
    file = tmp_path / "train.py"
    file.write_text(TWO, encoding="utf-8")
    return file


def lint(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["lint", "--no-cache", *arguments])
    return ended.value.code


def test_safe_fixes_are_made_and_the_rest_is_reported(script, capsys):
    assert lint("--fix") == 1
    out, err = capsys.readouterr()
    assert script.read_text(encoding="utf-8") == SAFE
    assert "softmax-before-cross-entropy" in out
    assert "clip-after-step" not in out
    assert err == "truestep: made 1 fix in train.py, 1 more to be reviewed, with --unsafe-fixes\n"


def test_a_second_run_finds_nothing_more_to_fix(script, capsys):
    assert lint("--fix", "--unsafe-fixes") == 0
    assert script.read_text(encoding="utf-8") == ALL
    assert capsys.readouterr().err == "truestep: made 2 fixes in train.py\n"
    assert lint("--fix", "--unsafe-fixes") == 0
    assert script.read_text(encoding="utf-8") == ALL
    assert capsys.readouterr() == ("no failure found in 1 file\n", "")


def test_a_diff_edits_nothing_and_can_be_applied(script, capsys):
    assert lint("--diff") == 1
    out, err = capsys.readouterr()
    assert script.read_text(encoding="utf-8") == TWO
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@ -")
    assert [line for line in out.splitlines()[2:] if line[:1] in "+-"] == ["+" + CLIP[:-1], "-" + CLIP[:-1]]
    assert err == "truestep: 1 fix in train.py, 1 more to be reviewed, with --unsafe-fixes\n"
    lint("--fix", "--unsafe-fixes")
    capsys.readouterr()
    assert lint("--diff") == 0
    assert capsys.readouterr() == ("", "")


def test_line_ends_of_windows_are_kept(script):
    script.write_bytes(TWO.replace("\n", "\r\n").encode())
    lint("--fix", "--unsafe-fixes")
    assert script.read_bytes() == ALL.replace("\n", "\r\n").encode()


def test_only_chosen_rules_and_shown_findings_are_fixed(script):
    lint("--fix", "--unsafe-fixes", "--select", "softmax-before-cross-entropy")
    assert script.read_text(encoding="utf-8") == TWO.replace(", nn.Softmax(dim=1)", "")
    text = TWO.replace(CLIP, CLIP[:-1] + "  # truestep: ignore[clip-after-step] on purpose\n")
    script.write_text(text, encoding="utf-8")
    lint("--fix")
    assert script.read_text(encoding="utf-8") == text


def test_findings_of_a_baseline_are_not_fixed(script):
    lint("--write-baseline", "base.json")
    lint("--fix", "--unsafe-fixes", "--baseline", "base.json")
    assert script.read_text(encoding="utf-8") == TWO


def test_standard_input_is_fixed_to_standard_output(script, capsysbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(TWO.encode())))
    assert lint("--fix", "-", "--stdin-filename", "given.py") == 1
    out, err = capsysbinary.readouterr()
    assert out.decode() == SAFE
    assert b"given.py" in err
    assert b"softmax-before-cross-entropy" in err


def test_json_and_sarif_have_the_fixes(script, capsys):
    lint("--format", "json")
    report = json.loads(capsys.readouterr().out)
    fixes = {one["rule"]: one["fix"] for one in report["findings"]}
    assert fixes["clip-after-step"]["safe"]
    assert not fixes["softmax-before-cross-entropy"]["safe"]
    lines = TWO.splitlines(keepends=True)
    for edit in reversed(fixes["clip-after-step"]["edits"]):
        lines[edit["line"] - 1 : edit["line"] - 1 + edit["lines"]] = [edit["text"]]
    assert "".join(lines) == SAFE
    lint("--format", "sarif")
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    described = {one["ruleId"]: one["fixes"][0]["description"]["text"] for one in run["results"]}
    assert described["softmax-before-cross-entropy"] == "Remove the softmax before the loss (to be reviewed)"
