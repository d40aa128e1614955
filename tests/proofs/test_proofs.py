"""Every proof under supervision: the broken program has its one finding at its marked line, the correct one none."""

import subprocess
import sys

import pytest
from programs import REPOSITORY, expected, supervise

from truestep.rules import all_rules

PROOFS = REPOSITORY / "proofs"
STEPS = {
    "accumulation-not-normalised": 40, "clip-before-backward": 40, "clip-wrong-parameters": 40,
    "forward-called-directly": 40, "loss-kept-with-graph": 40, "optimizer-rebuilt": 60, "padding-in-loss": 60,
    "seed-in-training-loop": 60, "target-in-input": 60, "update-rounds-to-zero": 220,
}  # fmt: skip
"""Proofs with a run of seconds, for the harm: the finding is in these first steps. Whole runs are slow tests."""
RUNS = [
    *(pytest.param(rule, STEPS.get(rule), id=rule) for rule in all_rules()),
    *(pytest.param(rule, None, id=f"{rule} whole", marks=pytest.mark.slow) for rule in STEPS),
]


@pytest.mark.parametrize(("rule", "steps"), RUNS)
def test_the_broken_program_is_found_at_its_line_and_early(rule: str, steps: int | None) -> None:
    program = PROOFS / rule / "bad.py"
    marked = expected(program)
    assert {name for name, _ in marked} == {rule}
    run = supervise(program, steps=steps)
    assert run.how == "finished", str(run)
    assert run.found == marked, str(run)
    assert run.errors == [], str(run)


@pytest.mark.parametrize(("rule", "steps"), RUNS)
def test_the_correct_program_is_quiet(rule: str, steps: int | None) -> None:
    program = PROOFS / rule / "good.py"
    assert expected(program) == set()
    run = supervise(program, steps=steps)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


@pytest.mark.parametrize("rule", all_rules())
def test_programs_are_short(rule: str) -> None:
    for name in ("bad.py", "good.py"):
        lines = (PROOFS / rule / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 40, f"{rule}/{name} has {len(lines)} lines"


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules())
def test_the_harm_exceeds_its_margin(rule: str) -> None:
    measured = subprocess.run(
        [sys.executable, PROOFS / "measure.py", rule], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    assert measured.returncode == 0, measured.stdout + measured.stderr
