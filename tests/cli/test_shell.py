"""Shell completion, and colours of the output."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from tiers import few

from truestep.cli.shell import completion
from truestep.experiments.changes import REMEDIES
from truestep.lint.engine import inspecting
from truestep.report import color
from truestep.rules import all_rules, catalogue
from truestep.templates import ORDER

cold = pytest.mark.cold

ESCAPE = "\x1b["


def completed(*words, cwd=None, shell="bash"):
    """Return the lines that the shell gets for a command line with an unfinished last word."""
    line = " ".join(("truestep", *words))
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_TYPER_COMPLETE_ARGS": line}
    env = os.environ | asked | {"_TRUESTEP_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    code = (
        "import sys\nfrom truestep.cli import main\n"
        "try:\n    main([])\nfinally:\n    print('heavy:', {'torch', 'numpy'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, env=env, check=True)
    assert done.stderr == "heavy: set()\n"
    return done.stdout.split("\n")[:-1]


COMPLETED = [
    (["ru"], ["run", "runs", "rules"]),
    (["explain", "missing-zero"], ["missing-zero-grad"]),
    (["explain", "graph-fr"], ["graph-freed"]),
    (["run", "--ignore", "nan-or-inf,missing-zero"], ["nan-or-inf,missing-zero-grad"]),
    (["run", "--fail-on", "w"], ["warning"]),
    (["run", "--color", "al"], ["always"]),
    (["prove", "--rule", "missing-zero"], ["missing-zero-grad"]),
    (["tune", "--only", "compile,tf"], ["compile,tf32"]),
    (["new", "t"], ["table", "text", "tokens"]),
    (["exercise", "long"], ["long-memory"]),
    (["run", "train.py", "--epo"], [""]),
]


@cold
@pytest.mark.parametrize(("words", "expected"), few(4, COMPLETED))
def test_words_are_completed_without_torch(words, expected):
    assert completed(*words) == expected


@pytest.mark.program
@cold
def test_other_shells_get_the_titles_too():
    assert completed("new", "dig", shell="fish")[0].startswith("digits\tClassify handwritten digits")
    assert '"missing-zero-grad":"An optimizer steps' in completed("explain", "missing-zero", shell="zsh")[0]


def test_all_ids_are_offered():
    assert {id for id, _ in completion.rules("")} == set(all_rules())
    assert {id for id, _ in completion.with_remedy("")} == set(REMEDIES)
    assert tuple(name for name, _ in completion.templates("")) == ORDER
    assert set(catalogue()) < {id for id, _ in completion.pages("")}
    assert {id for id, _ in completion.lint_rules("")} == set(inspecting())
    assert "missing-zero-grad,unsafe-load" in dict(completion.lint_rules("missing-zero-grad,unsafe"))


@cold
def test_runs_are_found_below_what_was_written(tmp_path, monkeypatch):
    for name in ("runs/b", "runs/a", "runs/own", "data"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("runs/a", "runs/b"):
        (tmp_path / name / "rank-0.jsonl").touch()
    for name in ("settings.json", "environment.json"):
        (tmp_path / "runs/own" / name).touch()
    monkeypatch.chdir(tmp_path)
    assert completion.records("") == ["runs/a", "runs/b"]
    assert completion.runs("ru") == ["runs/a", "runs/b", "runs/own"]
    assert completion.runs("runs/o") == ["runs/own"]
    assert completion.runs("data/") == completion.runs("nowhere/") == []
    assert completed("report", "runs/b", cwd=tmp_path) == ["runs/b"]


@pytest.mark.program
@cold
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_script_for_bash_completes(tmp_path):
    """The printed script is sourced, and its function called as bash does when TAB is pressed."""
    (tmp_path / "truestep").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m truestep "$@"\n')
    (tmp_path / "truestep").chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = (
        'eval "$(truestep --show-completion bash)"\n'
        "COMP_WORDS=(truestep explain clip-before-u) COMP_CWORD=2\n"
        "_truestep_completion truestep\n"
        'echo "${COMPREPLY[@]}"; complete -p truestep'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=os.environ | path, check=True
    )
    assert done.stdout == "clip-before-unscale\ncomplete -o default -F _truestep_completion truestep\n"


# --- colours ---------------------------------------------------------------------------------------------------------


class Terminal:
    """A stream that says whether it is a terminal."""

    def __init__(self, is_terminal):
        self.isatty = lambda: is_terminal


@pytest.fixture
def environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(color, "_chosen", "auto")
    return monkeypatch


@pytest.mark.parametrize("is_terminal", [True, False])
def test_colours_follow_the_option_then_the_environment_then_the_terminal(is_terminal, environment):
    stream = Terminal(is_terminal)
    assert color.is_colored(stream) is is_terminal
    environment.setenv("TERM", "dumb")
    assert not color.is_colored(stream)
    environment.setenv("FORCE_COLOR", "1")
    assert color.is_colored(stream)
    environment.setenv("NO_COLOR", "1")
    assert not color.is_colored(stream)
    assert color.is_refused()
    color.choose("always")
    assert color.is_colored(stream)
    assert not color.is_refused()
    environment.delenv("NO_COLOR")
    color.choose("never")
    assert not color.is_colored(stream)


PROGRAM = "import os, torch\nprint(sorted(os.environ))\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 1)\n" + (
    "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nfor _ in range(4):\n    model(torch.ones(1, 2)).sum()"
    ".backward()\n    optimizer.step()\n"
)


def written(tmp_path, *options, **environment):
    (tmp_path / "train.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "truestep", "run", *options, "train.py"],
        cwd=tmp_path,
        env=env | {"TERM": "xterm"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "missing-zero-grad" in done.stderr
    return done


@pytest.mark.program
def test_a_report_has_colours_where_they_are_wanted(tmp_path):
    plain = written(tmp_path)
    coloured = written(tmp_path, "--color", "always")
    assert ESCAPE not in plain.stderr
    assert ESCAPE in coloured.stderr
    assert coloured.stdout == plain.stdout, "the script sees the same environment"
    same = re.sub(r"\x1b\[[\d;]*m", "", coloured.stderr)
    assert [line for line in same.split("\n") if "time" not in line] == [
        line for line in plain.stderr.split("\n") if "time" not in line
    ]
    assert written(tmp_path, FORCE_COLOR="1").stderr.count(ESCAPE) == coloured.stderr.count(ESCAPE)
    assert ESCAPE not in written(tmp_path, "--color", "never", FORCE_COLOR="1").stderr


def test_tables_have_colours_where_they_are_wanted():
    command = [sys.executable, "-m", "truestep", "explain", "clip-after-step", "--color"]
    outputs = [
        subprocess.run([*command, when], capture_output=True, text=True, check=True).stdout
        for when in ("never", "always")
    ]
    assert [ESCAPE in output for output in outputs] == [False, True]
    assert "`" in outputs[0]
