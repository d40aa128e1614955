"""Active checks: no healthy program of any style has a finding with them, and a failure is found as without them."""

from pathlib import Path

import pytest
from programs import REPOSITORY, expected, supervise

from truestep.rules import all_rules

HERE = Path(__file__).parent
HEALTHY = sorted([*(HERE / "programs").glob("*.py"), *(HERE / "adversarial_healthy").glob("*.py")])
PROOFS = sorted((REPOSITORY / "proofs").glob("*/*.py"))

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", HEALTHY, ids=lambda path: path.stem)
def test_healthy_program_is_quiet(program: Path) -> None:
    run = supervise(program, active=True)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


@pytest.mark.parametrize("program", PROOFS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_proof_has_its_finding_and_no_other(program: Path) -> None:
    assert program.parent.name in all_rules()
    run = supervise(program, active=True)
    assert run.found == expected(program), str(run)
    assert run.errors == [], str(run)
