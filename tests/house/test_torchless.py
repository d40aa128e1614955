"""Without torch, everything but running works: help, the manual, the catalogue, and reports from a record."""

import subprocess
import sys

import pytest
from tiers import few

pytestmark = pytest.mark.cold

BLOCKED = """
import sys

class Without:
    \"\"\"A finder that does not find torch or numpy.\"\"\"

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {"torch", "numpy"} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
RECORD = """{"format":"truestep.record/1","started":{"script":"train.py","torch":"2.13.0"}}
{"ended":"finished","truncated":false,"internal_errors":[]}
"""


def without_torch(code, *arguments):
    command = [sys.executable, "-c", BLOCKED + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")


def truestep(*arguments):
    return without_torch("from truestep.cli import main\nmain()", *arguments)


def test_the_block_holds():
    assert "No module named 'torch'" in without_torch("import torch").stderr


COMMANDS = [
    (["--help"], "explain"),
    (["run", "--help"], "--fail-on"),
    (["repeat", "--help"], "--runs"),
    (["verify-resume", "--help"], "--kills"),
    (["explain", "missing-zero-grad"], "zero_grad()"),
    (["explain", "loss", "is", "nan"], "nan-or-inf"),
    (["rules"], "missing-zero-grad"),
    (["rules", "--format", "json"], '"missing-zero-grad"'),
    (["lint", "--no-cache", __file__], "no failure found in 1 file"),
]


@pytest.mark.parametrize(("arguments", "said"), few(4, COMMANDS))
def test_command_works(arguments, said):
    done = truestep(*arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_replay_works(tmp_path):
    (tmp_path / "rank-0.jsonl").write_text(RECORD, encoding="utf-8")
    done = truestep("replay", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "nothing was checked: no model was called" in done.stdout


def test_run_says_what_is_missing(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('not run')", encoding="utf-8")
    done = truestep("run", str(script))
    assert done.returncode == 2
    assert "torch is not installed" in done.stderr
    assert "not run" not in done.stdout


NEED_TORCH = """
import truestep
for name in NAMES:
    try:
        eval(name)
    except truestep.errors.TorchMissing as error:
        assert f"{name} needs torch, which is not installed" in str(error), error
        assert "install it with `pip install torch`" in str(error)
        assert error.__cause__ is None and error.__suppress_context__
    else:
        raise SystemExit(name)
"""


@pytest.mark.program
def test_the_toolkit_says_what_is_missing():
    names = ["Run", "EMA", "Mean", "Loader", "freeze", "load_weights", "parameter_groups", "data.csv", "data.idx"]
    names += ["data.tensors", "data.text", "data.tokens", "data.images", "debugging.profile", "debugging.inspect"]
    done = without_torch(f"NAMES = {[f'truestep.{name}' for name in names]}" + NEED_TORCH)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = without_torch("import truestep\nwith truestep.watch():\n    pass")
    assert done.stderr.splitlines()[-3].startswith("truestep.errors.TorchMissing: torch cannot be imported")
    done = without_torch("from truestep import data, debugging, schedules, Settings, Finding")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "truestep",
        "truestep.rules",
        "truestep.lint",
        "truestep.syntax",
        "truestep.report",
        "truestep.supervision.record",
        "truestep.doctor",
    ],
)
def test_module_is_imported(module):
    done = without_torch(f"import {module}")
    assert done.returncode == 0, done.stderr
