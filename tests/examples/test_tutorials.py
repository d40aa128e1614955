"""The tutorials, followed: files are written and edited, and commands print the lines that the pages quote."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorial"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SLOW = {"prove", "verify-resume", "tune", "profile"}
"""Commands that run the script several times."""


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Return the language, the title and the text of each block."""
    return FENCE.findall((TUTORIALS / f"{page}.md").read_text(encoding="utf-8"))


def edited(text: str, change: str) -> str:
    """Return a file after the hunks of a diff without line numbers."""
    for hunk in re.split(r"^@@\n", change, flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(before) == 1, hunk
        text = text.replace(before, after)
    return text


def same(line: str) -> str:
    """Return a line without its numbers, and without the room that they take."""
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]*\d[\d.,e-]*", "#", line)).strip()


def ran(command: list[str], folder: Path) -> str:
    name = command[0]
    program = [sys.executable] if name == "python" else [sys.executable, "-m", name]
    outside = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "TRUESTEP_WATCH")}
    environment = outside | {"NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*program, *command[1:]], cwd=folder, env=environment, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


def follow(page: str, folder: Path, *, slow: bool) -> Iterator[tuple[str, list[str]]]:
    """Follow a page, and yield each command with the quoted lines that it did not print, and its output."""
    commands = 0
    for language, title, text in blocks(page):
        if language == "python" and title:
            (folder / title).write_text(text, encoding="utf-8")
        elif language == "diff":
            (folder / title).write_text(edited((folder / title).read_text(encoding="utf-8"), text), encoding="utf-8")
        elif language == "console":
            first, *quoted = text.splitlines()
            assert first.startswith("$ ")
            command = first[2:].split()
            if command[0] == "truestep" and (command[1] in SLOW) != slow:
                continue
            commands += 1
            if command[0] == "python" and slow:
                continue
            output = ran(command, folder)
            shutil.rmtree(folder / "runs", ignore_errors=True)
            printed = {same(line) for line in output.splitlines()}
            missing = [line for line in quoted if line != "..." and same(line) not in printed]
            yield first, [*missing, "in:", *output.splitlines()] if missing else []
    assert commands


@pytest.mark.program
@pytest.mark.parametrize("page", [path.stem for path in sorted(TUTORIALS.glob("*.md"))])
@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_commands_print_the_quoted_lines(page: str, slow: bool, tmp_path: Path) -> None:
    assert {first: missing for first, missing in follow(page, tmp_path, slow=slow) if missing} == {}
