"""`make new-rule` writes skeletons, and no skeleton passes for a rule."""

import ast
import runpy
from pathlib import Path

import pytest
from every import every

from truestep.rules import all_rules

ROOT = Path(__file__).parents[2]
MARKS = ("FILL IN", "FILL_IN")
TOOL = runpy.run_path(str(ROOT / "tools" / "new_rule.py"))


def unfilled(text):
    return [number for number, line in enumerate(text.splitlines(), start=1) if any(mark in line for mark in MARKS)]


@every("id", all_rules())
def test_nothing_is_left_to_fill_in(id):
    for name in TOOL["files"](id):
        path = ROOT / name
        if path.is_file():
            assert not unfilled(path.read_text(encoding="utf-8")), name


def test_every_skeleton_is_refused_and_is_code(tmp_path):
    written = TOOL["write"]("step-in-the-dark", tmp_path)
    assert len(written) == 5
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert unfilled(text), path
        assert "$" not in text
        if path.suffix == ".py":
            ast.parse(text)


def test_what_is_there_is_not_overwritten(tmp_path):
    TOOL["write"]("step-in-the-dark", tmp_path)
    with pytest.raises(FileExistsError, match="exists already"):
        TOOL["write"]("step-in-the-dark", tmp_path)


@pytest.mark.parametrize("id", ["", "word", "Clip-After", "clip_after", "clip-", "../a-b"])
def test_other_names_are_refused(id, tmp_path):
    with pytest.raises(ValueError, match="kebab case"):
        TOOL["write"](id, tmp_path)
