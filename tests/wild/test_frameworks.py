"""Lightning, Fabric, Accelerate, transformers, Ignite and skorch under ``truestep run``: silent on health, the same
output and exit code as without it, and a planted failure is found on the user's line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from programs import expected

HERE = Path(__file__).parent
HEALTHY = sorted((HERE / "frameworks").glob("*.py"))
PLANTED = sorted((HERE / "frameworks_planted").glob("*.py"))
FRAMEWORKS = ("lightning", "accelerate", "transformers", "ignite", "skorch", "torchmetrics")

pytestmark = pytest.mark.slow


def needed(program: Path) -> list[str]:
    """The frameworks that a program imports."""
    imported = re.findall(r"^(?:import|from) (\w+)", program.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for name in FRAMEWORKS if name in imported]


def start(command: list[str], folder: Path) -> tuple[int, str, str]:
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def watched(program: Path, folder: Path) -> tuple[tuple[int, str, str], dict[str, Any]]:
    for name in needed(program):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install truestep[frameworks]")
    report = folder / "report.json"
    run = start(["-m", "truestep", "run", "--format", "json", "--output", str(report), str(program)], folder)
    assert report.exists(), run[2]
    return run, json.loads(report.read_text(encoding="utf-8"))


def found(report: dict[str, Any]) -> set[tuple[str, int]]:
    sure = [finding for finding in report["findings"] if finding["confidence"] != "low"]
    return {(finding["rule"], finding["primary"]["site"]["line"]) for finding in sure}


@pytest.mark.parametrize("program", HEALTHY, ids=lambda path: path.stem)
def test_healthy_program_is_quiet_and_unchanged(program: Path, tmp_path: Path) -> None:
    (code, out, err), report = watched(program, tmp_path)
    assert code == 0, err
    assert found(report) == set()
    assert report["internal_errors"] == []
    assert report["steps"] >= 10
    assert start([str(program)], tmp_path)[:2] == (code, out)
    assert {path.name for path in tmp_path.iterdir()} <= {"report.json"}


@pytest.mark.parametrize("program", PLANTED, ids=lambda path: path.stem)
def test_planted_failure_is_found_at_the_line_of_the_user(program: Path, tmp_path: Path) -> None:
    (code, _, err), report = watched(program, tmp_path)
    assert code == 0, err
    assert found(report) == expected(program)
    assert {finding["primary"]["site"]["path"] for finding in report["findings"]} == {str(program)}
    assert report["internal_errors"] == []


ONE_LINE = """
import json, sys, truestep
path = sys.argv[1]
names = {"__name__": "__main__", "__file__": path}
with truestep.watch() as session:
    exec(compile(open(path).read(), path, "exec"), names)
findings = [finding for finding in session.stop().findings if finding.confidence != "low"]
print(json.dumps([[finding.rule, finding.primary.site.line] for finding in findings]))
"""
WATCHED = (
    "lightning_losses",
    "accelerate_missing_zero_grad",
    "hf_trainer_own_models",
    "ignite_own_step",
    "skorch_softmax",
)


@pytest.mark.parametrize("program", [path for path in PLANTED if path.stem in WATCHED], ids=lambda path: path.stem)
def test_one_line_around_the_training_finds_the_same(program: Path, tmp_path: Path) -> None:
    if not all(find_spec(name) for name in needed(program)):
        pytest.skip("not installed: pip install truestep[frameworks]")
    code, out, err = start(["-c", ONE_LINE, str(program)], tmp_path)
    assert code == 0, err
    assert {(rule, line) for rule, line in json.loads(out.splitlines()[-1])} == expected(program)


def test_every_framework_has_healthy_and_planted_programs() -> None:
    for programs in (HEALTHY, PLANTED):
        assert {name for program in programs for name in needed(program)} >= set(FRAMEWORKS) - {"torchmetrics"}
