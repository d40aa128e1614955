"""Programs written against the rules: healthy ones that look like failures, and failures as people write them."""

from pathlib import Path

import pytest
from programs import expected, supervise
from tiers import in_tiers

HEALTHY = sorted((Path(__file__).parent / "adversarial_healthy").glob("*.py"))
BROKEN = sorted((Path(__file__).parent / "adversarial_broken").glob("*.py"))
QUICK_HEALTHY = {
    "batch_statistics_and_prototypes", "drop_path_at_zero", "networks_beside_untrained_ones",
    "reproduce_the_current_word", "scaler_skips_first_steps", "window_carried_by_global_step",
}  # fmt: skip
QUICK_BROKEN = {
    "biases_beside_an_average", "custom_backward_of_a_gated_product", "first_of_a_tuple_that_is_a_tensor",
    "graph_cut_detached_encoder_output", "overlap_of_a_thresholded_mask", "zero_per_epoch_hook_method",
}  # fmt: skip
"""For `make test`; the others are for `make programs`."""
KNOWN_MISSES: dict[str, str] = {
    "accumulation_chunks_of_one_batch": "several backward passes within one batch are also how healthy multi-task "
    "losses and gradients per sample are written: only batches drawn between them tell accumulation",
}
"""Broken programs that are not found, and why."""
SLOW = {
    "starved_by_slow_workers", "starved_by_transforms", "workers_respawned_init_function",
    "workers_respawned_stream_with_evaluation",
}  # fmt: skip
"""These programs wait for seconds; part of `make test-all`, as the proofs of their rules are of `make test`."""


@pytest.mark.parametrize("program", in_tiers(HEALTHY, QUICK_HEALTHY))
def test_healthy_program_is_quiet(program: Path) -> None:
    run = supervise(program)
    assert run.how == "finished", str(run)
    assert run.found == set(), str(run)
    assert run.errors == [], str(run)


@pytest.mark.parametrize("program", in_tiers(BROKEN, QUICK_BROKEN, slow=SLOW))
def test_failure_is_found_at_its_line(program: Path) -> None:
    run, marked = supervise(program), expected(program)
    assert marked, "no line is marked"
    assert run.how == "finished", str(run)
    assert run.errors == [], str(run)
    if program.stem in KNOWN_MISSES:
        assert run.found == set(), f"found after all, remove it from KNOWN_MISSES: {run}"
        return
    assert run.found == marked, str(run)


def test_there_are_enough_of_them() -> None:
    assert len(HEALTHY) >= 40
    assert len(BROKEN) >= 60
    assert len(KNOWN_MISSES) <= 8


def test_every_rule_is_attacked_twice() -> None:
    from truestep.rules import all_rules

    attacked = [rule for program in BROKEN for rule in {rule for rule, _ in expected(program)}]
    few = [rule for rule in all_rules() if attacked.count(rule) < 2]
    assert few == [], f"tests/wild/adversarial_broken must have two programs with `# error: ID` for {', '.join(few)}"
