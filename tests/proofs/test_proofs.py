"""Every proof under supervision: the broken program has its one finding at its marked line, the correct one none."""

import os
import subprocess
import sys
from typing import Any

import pytest
from programs import REPOSITORY, expected, supervise

PROOFS = REPOSITORY / "proofs"
EACH = sorted(path.parent.relative_to(PROOFS).as_posix() for path in PROOFS.glob("**/proof.toml"))
"""Rules, and their second proofs, such as "sum-overwritten/last-batch"."""
STEPS = {
    "accumulation-not-normalised": 40, "clip-before-backward": 40, "clip-wrong-parameters": 40,
    "forward-called-directly": 40, "hidden-state-not-detached": 40, "loss-kept-with-graph": 40,
    "optimizer-rebuilt": 60, "padding-in-loss": 60, "seed-in-training-loop": 60,
    "noise-not-in-input": 60, "target-in-input": 60, "update-rounds-to-zero": 220,
}  # fmt: skip
"""Proofs with a run of seconds, for the harm: the finding is in these first steps. Whole runs are slow tests."""
RUNS = [
    *(pytest.param(proof, STEPS.get(proof), id=proof) for proof in EACH),
    *(pytest.param(rule, None, id=f"{rule} whole", marks=pytest.mark.slow) for rule in STEPS),
]

CLOCKED = {"loader-starves-training", "workers-respawned"}
"""Rules on measured time, which do not judge runs in which other programs occupied the processors."""


def others_later(*quick: str) -> list[Any]:
    """Return the proofs of a test: those that are named for `make test`, the others for `make programs`."""
    assert set(quick) <= set(EACH)
    return [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, *[pytest.mark.program] * (one.id not in quick)])
        for one in RUNS
    ]


@pytest.mark.parametrize(
    ("proof", "steps"),
    others_later(
        "evaluation-on-other-classes", "layers-without-activation", "loss-maximised", "view-instead-of-permute"
    ),
)
def test_the_broken_program_is_found_at_its_line_and_early(proof: str, steps: int | None) -> None:
    program = PROOFS / proof / "bad.py"
    marked = expected(program)
    assert {name for name, _ in marked} == {proof.partition("/")[0]}
    run = supervise(program, steps=steps)
    assert run.how == "finished", str(run)
    if proof in CLOCKED and not run.found and os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        pytest.skip("other programs occupy the processors")
    assert run.found == marked, f"findings that follow from this one belong in its `leads_to` or `explains`: {run}"
    assert run.errors == [], str(run)


@pytest.mark.parametrize(
    ("proof", "steps"), others_later("accumulation-not-normalised", "loss-maximised", "padding-changes-output")
)
def test_the_correct_program_is_quiet(proof: str, steps: int | None) -> None:
    program = PROOFS / proof / "good.py"
    assert expected(program) == set()
    run = supervise(program, steps=steps)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


@pytest.mark.parametrize("proof", EACH)
def test_programs_are_short(proof: str) -> None:
    for name in ("bad.py", "good.py"):
        text = (PROOFS / proof / name).read_text(encoding="utf-8")
        most = 60 if "start_processes" in text else 40  # several processes need more lines
        lines = text.splitlines()
        assert len(lines) <= most, f"{proof}/{name} has {len(lines)} lines"


@pytest.mark.slow
@pytest.mark.parametrize("proof", EACH)
def test_the_harm_exceeds_its_margin(proof: str) -> None:
    measured = subprocess.run(
        [sys.executable, PROOFS / "measure.py", proof], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    assert measured.returncode == 0, measured.stdout + measured.stderr
