"""The demo: two programs that differ in one line; one is found, the other quiet, and the README shows that report."""

import ast
import difflib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACCIDENT, CORRECTED = (ROOT / "examples" / name for name in ("digits_accident.py", "digits_corrected.py"))


def code(path):
    """The program without its docstring, line by line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[ast.parse("\n".join(lines)).body[0].end_lineno :]


def report(path, tmp_path):
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "truestep", "run", "--steps", "60", "--format", "json", "--output", str(out)]
    subprocess.run([*command, str(path.relative_to(ROOT))], cwd=ROOT, check=True, capture_output=True)
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_programs_differ_in_one_line():
    changes = [line for line in difflib.ndiff(code(ACCIDENT), code(CORRECTED)) if line[0] in "+-"]
    assert changes == ["+         optimizer.zero_grad()"]


@pytest.mark.parametrize("path", [ACCIDENT, CORRECTED], ids=lambda path: path.stem)
def test_program_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


def test_the_accident_is_found_as_the_readme_shows(tmp_path):
    (finding,) = report(ACCIDENT, tmp_path)["findings"]
    site = finding["primary"]["site"]
    assert finding["rule"] == "missing-zero-grad"
    assert site["text"].strip() == "optimizer.step()"
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in (
        f"error[missing-zero-grad]: {finding['message']}",
        f"--> {site['path']}:{site['line']}:{site['column']}",
        f"= help: {finding['help']}",
        *(mark["label"] for mark in (finding["primary"], *finding["related"])),
    ):
        assert text in shown


def test_the_corrected_program_is_quiet(tmp_path):
    assert report(CORRECTED, tmp_path)["findings"] == []
