"""The command line accepts the commands that pages and messages quote: their options, choices and arguments exist."""

import contextlib
import io
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
import typer
import yaml

from truestep.cli import COMMANDS, _later

pytestmark = pytest.mark.program  # all commands are imported
ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
TEXTS += [path for folder in ("docs", "examples") for path in sorted((ROOT / folder).rglob("*.md"))]
TEXTS += [path for kind in ("py", "md", "toml") for path in sorted((ROOT / "src").rglob(f"*.{kind}"))]
NAMES = "|".join(COMMANDS)
QUOTED = re.compile(rf"^ *(?:\$ |- run: |run: )?(truestep (?:{NAMES})\b.*)|`(truestep [a-z][^`]*)`", re.MULTILINE)
BESIDE = re.compile(r"  +#.*|   *[a-z ]+$")
"""A comment, or the words that the output of a command has beside another one."""
SYNOPSIS = re.compile(r"\[OPTIONS\] ?|\[-- B\]|\[--[a-z ]+[A-Z]*\]")
PARTIAL = re.compile(r"Missing (?:argument|option)|requires an argument")
"""Errors of a command that a sentence names without its arguments."""


def commands(text):
    """Yield each command of a text, and whether it is a line that a reader can copy."""
    for match in QUOTED.finditer(text):
        line = BESIDE.sub("", " ".join((match[1] or match[2]).split("\n")))
        yield re.split(r" (?:&&|\||2>&1) ", line)[0].strip(), bool(match[1]) and not SYNOPSIS.search(line)


@pytest.fixture(scope="module")
def command_line():
    app = typer.Typer(rich_markup_mode=None)
    app.callback()(lambda: None)
    for name, command in COMMANDS.items():
        app.command(name, context_settings=dict(command.settings))(_later(command.load(), []))
    return typer.main.get_command(app)


def refusal(command_line, line):
    """Return the error of the command line about a command, or an empty string."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as end:
        command_line.main(shlex.split(SYNOPSIS.sub("", line))[1:], prog_name="truestep")
    return said.getvalue().strip().splitlines()[-1] if end.value.code else ""


def test_quoted_commands_are_accepted(command_line):
    quoted = defaultdict(set)
    for path in TEXTS:
        for command in commands(path.read_text(encoding="utf-8")):
            quoted[command].add(str(path.relative_to(ROOT)))
    assert len(quoted) > 200
    said = {command: refusal(command_line, command[0]) for command in quoted}
    refused = {key: text for key, text in said.items() if text and (key[1] or not PARTIAL.search(text))}
    assert {(line, *sorted(quoted[line, whole])): text for (line, whole), text in refused.items()} == {}


def test_the_hooks_of_the_page_on_ci_are_accepted_with_their_arguments(command_line):
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    entries = {hook["id"]: hook["entry"] for hook in hooks}
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    used = [hook for block in blocks if "repos" in block for repo in block["repos"] for hook in repo["hooks"]]
    assert {hook["id"] for hook in used} == set(entries)
    for hook in used:
        assert refusal(command_line, shlex.join([*entries[hook["id"]].split(), *hook["args"]])) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    $ truestep run --stepz 3 train.py", "No such option: --stepz"),
        ("    $ truestep run --format pdf train.py", "'pdf' is not"),
        ("    $ truestep prove", "Missing argument"),
        ("with `truestep export --onnx` it", "No such option"),
        ("      - run: truestep lint --format sarif .", ""),
    ],
)
def test_a_wrong_command_is_refused(text, expected, command_line):
    ((line, _),) = commands(text)
    said = refusal(command_line, line)
    assert expected in said if expected else not said
