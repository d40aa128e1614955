"""The demo: two programs that differ in one line; one is found, the other quiet, and the README shows that report."""

import ast
import difflib
import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from truestep.report import render
from truestep.rules import all_rules
from truestep.supervision import record as records

ROOT = Path(__file__).parents[2]
ACCIDENT, CORRECTED = (ROOT / "examples" / name for name in ("digits_accident.py", "digits_corrected.py"))


def code(path):
    """The program without its docstring, line by line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[ast.parse("\n".join(lines)).body[0].end_lineno :]


def report(path, tmp_path, *options):
    out = tmp_path / "report.json"
    command = [
        sys.executable,
        "-m",
        "truestep",
        "run",
        "--steps",
        "60",
        "--format",
        "json",
        "--output",
        str(out),
        *options,
    ]
    subprocess.run([*command, str(path.relative_to(ROOT))], cwd=ROOT, check=True, capture_output=True)
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_programs_differ_in_one_line():
    changes = [line for line in difflib.ndiff(code(ACCIDENT), code(CORRECTED)) if line[0] in "+-"]
    assert changes == ["+         optimizer.zero_grad()"]


@pytest.mark.parametrize("path", [ACCIDENT, CORRECTED], ids=lambda path: path.stem)
def test_program_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


def picture_text():
    """The text of the picture, line by line."""
    rows = {}
    text = (ROOT / "docs" / "assets" / "demo.svg").read_text(encoding="utf-8")
    for x, y, piece in re.findall(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)" textLength[^>]*>(.*?)</text>', text):
        rows.setdefault(float(y), []).append((float(x), html.unescape(piece).replace("\xa0", " ")))
    return "\n".join("".join(piece for _, piece in sorted(row)) for _, row in sorted(rows.items()))


def quotes():
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md")}
    return pages | {"docs/assets/demo.svg": picture_text()}


def alike(text):
    """A text without its numbers, which a shorter run has too, and without its line ends."""
    return " ".join(re.sub(r"\d[\d,.]*", "#", text).split())


@pytest.mark.program
def test_the_accident_is_found_as_the_pages_and_the_picture_show(tmp_path):
    found = report(ACCIDENT, tmp_path, "--record", str(tmp_path / "record"))
    assert [finding["rule"] for finding in found["findings"]] == ["missing-zero-grad"]
    text = render(records.read(tmp_path / "record"), "text", width=100)
    block = text[: text.index("\n\n")]
    assert block.startswith("error[missing-zero-grad]: ")
    stale = [name for name, page in quotes().items() if alike(block) not in alike(page)]
    assert not stale, "run `make picture`"


def test_quoted_counts_are_those_of_all_rules():
    count = re.compile(r"(no|\d+) failures? found, (\d+) rules clear, (\d+) not observed")
    for name, page in quotes().items():
        counts = count.findall(" ".join(page.split()))
        assert counts, name
        for found, clear, unseen in counts:
            total = (0 if found == "no" else int(found)) + int(clear) + int(unseen)
            assert total == len(all_rules()), f"{name}: run `make picture`"


def test_the_corrected_program_is_quiet(tmp_path):
    assert report(CORRECTED, tmp_path)["findings"] == []
