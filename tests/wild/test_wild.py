"""Healthy programs of every style: no finding of high or medium confidence, no error of ours."""

from pathlib import Path

import pytest
from programs import supervise
from tiers import in_tiers

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
QUICK = {
    "gated_logits_and_bce_probabilities", "multitask_several_backwards", "sgd_by_hand_no_grad", "tensor_subclass_units",
    "warm_restarts_fractional",
}  # fmt: skip
"""For `make test`; the others are for `make programs`."""


@pytest.mark.parametrize("program", in_tiers(PROGRAMS, QUICK))
def test_healthy_program_is_quiet(program: Path) -> None:
    run = supervise(program)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 310
