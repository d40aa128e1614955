"""Healthy programs of every style: no finding of high or medium confidence, no error of ours."""

from pathlib import Path

import pytest
from programs import supervise
from tiers import in_tiers

BARE = (
    "22_q_learning_target_dict", "40_mc_dropout_uncertainty", "47_sam_by_hand", "52_federated_averaging",
    "56_lr_finder", "61_gcn_transductive", "81_diffusion_moons", "85_fixmatch_mean_teacher",
)  # fmt: skip
"""Programs without modules in which `bench/mutants` plants mistakes."""
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
PROGRAMS += [Path(__file__).parents[2] / "bench" / "mutants" / "bare" / f"{name}.py" for name in BARE]
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
