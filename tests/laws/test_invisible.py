"""Law 1: a supervised run is bit-identical to an unsupervised one.

Every program prints its losses with all digits, and hashes of weights, gradients, optimizer state and random states.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiers import only

SCRIPTS = Path(__file__).with_name("scripts")
PROGRAMS = sorted(path.stem for path in SCRIPTS.glob("[a-z]*.py"))
FAILING = {"crashes": 1, "crashes_everywhere": 1, "exits_3": 3}
SLOW = {
    "bf16_autocast", "compiled_function", "crashes_everywhere", "ddp_one", "lbfgs", "optimizers_in_turn", "own_hooks",
    "resuming", "rnn_dropout", "sparse_and_custom", "threads", "two_models", "warnings_shown", "weights_elsewhere",
}  # fmt: skip
"""Part of `make test-all`: each has a neighbour among the others."""
LONG = {
    "compiled_model", "copied", "failing", "functional", "gan", "grad_scaler", "loader_workers", "own_tensors",
    "swapped",
}  # fmt: skip
"""Part of `make programs`."""
MARKS = {**dict.fromkeys(SLOW, pytest.mark.slow), **dict.fromkeys(LONG, pytest.mark.program)}
Run = tuple[int, str, str]


def python(*arguments: str, **environment: str) -> Run:
    command = [sys.executable, *arguments]
    values = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **environment}
    done = subprocess.run(
        command, cwd=SCRIPTS, env=values, capture_output=True, text=True, timeout=600, check=False, errors="replace"
    )
    return done.returncode, constant(done.stdout), constant(done.stderr)


def constant(text: str) -> str:
    """Blank the parts that differ between two runs of plain python too: addresses, and times and processes in logs."""
    said = [line for line in text.splitlines() if not line.startswith("truestep: ")]
    return re.sub(r"0x[0-9a-f]+|(?<=^[WEI])\d{4} [\d:.]+ +\d+", "-", "\n".join(said), flags=re.MULTILINE)


def supervised(tmp_path: Path, *arguments: str, **environment: str) -> tuple[Run, dict[str, Any]]:
    """Run under supervision; return the results of the program and the report, which goes to a file."""
    report = tmp_path / "report.json"
    options = ["--format", "json", "--output", str(report)]
    run = python("-m", "truestep", "run", *options, *arguments, **environment)
    return run, json.loads(report.read_text(encoding="utf-8"))


def same(plain: Run, watched: Run) -> None:
    assert watched[1] == plain[1]
    assert watched[2] == plain[2]
    assert watched[0] == plain[0]


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in PROGRAMS])
def test_a_supervised_program_is_bit_identical(name: str, tmp_path: Path) -> None:
    plain = python(f"{name}.py")
    watched, report = supervised(tmp_path, f"{name}.py")
    same(plain, watched)
    assert plain[0] == FAILING.get(name, 0), plain[2]
    assert report["internal_errors"] == [], report["internal_errors"]
    assert report["steps"] >= 3 or name in ("warnings_shown", "functional", "crashes_everywhere", "threads")


def test_a_module_is_bit_identical(tmp_path: Path) -> None:
    plain = python("-m", "package.train")
    watched, report = supervised(tmp_path, "-m", "package.train")
    same(plain, watched)
    assert report["steps"] == 10


@pytest.mark.parametrize(
    "name", only(["gradient_checkpointing"], ["failing", "gradient_checkpointing", "loader_workers"])
)
def test_recording_changes_nothing(name: str, tmp_path: Path) -> None:
    plain = python(f"{name}.py")
    watched, report = supervised(tmp_path, "--record", str(tmp_path / "record"), f"{name}.py")
    same(plain, watched)
    assert (tmp_path / "record" / "rank-0.jsonl").stat().st_size > 100
    assert bool(report["findings"]) == (name == "failing")


@pytest.mark.program
def test_the_report_is_all_that_is_added_to_the_error_stream() -> None:
    plain = python("failing.py")
    watched = python("-m", "truestep", "run", "failing.py")
    assert watched[:2] == plain[:2]
    assert watched[2].startswith(plain[2])
    assert "error[missing-zero-grad]" in watched[2][len(plain[2]) :]


@pytest.mark.program
def test_threads_and_sums_are_chosen_by_the_program(tmp_path: Path) -> None:
    """A program that sets OMP_NUM_THREADS before its import of torch gets these threads."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n"
        "torch.manual_seed(0)\nprint(repr(torch.randn(1 << 20).sum().item()))\n",
        encoding="utf-8",
    )
    plain = python(str(script), OMP_NUM_THREADS="")
    watched, _ = supervised(tmp_path, str(script), OMP_NUM_THREADS="")
    same(plain, watched)
    assert plain[1].startswith("1\n")


@pytest.mark.program
def test_a_stopped_run_is_the_beginning_of_the_whole_one(tmp_path: Path) -> None:
    plain = python("rnn_dropout.py")
    watched, report = supervised(tmp_path, "--steps", "4", "rnn_dropout.py")
    assert (watched[0], report["steps"]) == (0, 4)
    assert watched[1].splitlines() == plain[1].splitlines()[:3]
