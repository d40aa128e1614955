"""The texts of `--help` are part of the interface: a change of them is a change of these files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import few

pytestmark = pytest.mark.cold

SNAPSHOTS = Path(__file__).parent / "help"
PAGES = {
    "truestep": [],
    "run": ["run"],
    "check": ["check"],
    "lint": ["lint"],
    "prove": ["prove"],
    "compare": ["compare"],
    "repeat": ["repeat"],
    "runs": ["runs"],
    "overfit": ["overfit"],
    "inspect": ["inspect"],
    "profile": ["profile"],
    "plan": ["plan"],
    "verify-resume": ["verify-resume"],
    "tune": ["tune"],
    "export": ["export"],
    "bench-inference": ["bench-inference"],
    "new": ["new"],
    "exercise": ["exercise"],
    "replay": ["replay"],
    "report": ["report"],
    "explain": ["explain"],
    "rules": ["rules"],
    "lsp": ["lsp"],
    "mcp": ["mcp"],
    "skills": ["skills"],
    "doctor": ["doctor"],
}


def help_of(arguments):
    command = [sys.executable, "-m", "truestep", *arguments, "--help"]
    wide = os.environ | {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8", env=wide).stdout


@pytest.mark.parametrize("page", few(3, PAGES))
def test_help_is_as_it_was(page):
    assert help_of(PAGES[page]) == (SNAPSHOTS / f"{page}.txt").read_text(encoding="utf-8")


def test_every_command_has_a_snapshot():
    from truestep.cli import COMMANDS

    assert set(PAGES) == {"truestep", *COMMANDS}
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(PAGES)


if __name__ == "__main__":
    # Write the snapshots: python tests/house/test_help.py
    SNAPSHOTS.mkdir(exist_ok=True)
    for page, arguments in PAGES.items():
        (SNAPSHOTS / f"{page}.txt").write_text(help_of(arguments), encoding="utf-8", newline="\n")
