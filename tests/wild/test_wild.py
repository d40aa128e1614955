"""Healthy programs of every style: no finding of high or medium confidence, no error of ours."""

from pathlib import Path

import pytest
from programs import supervise
from tiers import in_tiers

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
LONG = {
    "byol_cosine_tau_flat", "dqn_target_with_gradients", "evolution_strategy", "hypernetwork_functional_call",
    "sac_learned_temperature",
}  # fmt: skip
"""The longest ones are for `make programs`."""


@pytest.mark.parametrize("program", in_tiers(PROGRAMS, [path for path in PROGRAMS[::24] if path.stem not in LONG]))
def test_healthy_program_is_quiet(program: Path) -> None:
    run = supervise(program)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 285
