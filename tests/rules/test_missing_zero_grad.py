from truestep.events import BackwardEnded, HandStepped, MixtureMeasured, OptimizerBuilt, OptimizerStepped, Site
from truestep.rules.missing_zero_grad import MissingZeroGrad
from truestep.testing import judge

BACKWARD, STEP = Site("train.py", 38, 8), Site("train.py", 41, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="AdamW", parameters=(1, 2))


def test_step_on_mixed_gradients_is_found_at_the_step():
    fresh = BackwardEnded(site=BACKWARD, observed=2, written=2)
    onto = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_used=2)
    clean = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
    mixed = OptimizerStepped(optimizer=1, site=STEP, observed=2, mixed=2)
    measured = MixtureMeasured(optimizer=1, ratio=2.04)
    (finding,) = judge(MissingZeroGrad, [BUILT, fresh, clean, onto, measured, mixed, onto, mixed, measured])
    assert finding.primary.site == STEP
    assert finding.related[0].site == BACKWARD
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (2, 3, 1)
    assert "2.0x" in finding.cost
    assert "opt.zero_grad()" in finding.help


def test_accumulation_is_quiet():
    more = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2)
    step = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
    assert judge(MissingZeroGrad, [BUILT, more, more, step, more, more, step]) == []


def test_gradients_left_by_another_optimizer_and_cleared_are_quiet():
    onto = BackwardEnded(site=BACKWARD, observed=4, written=4, onto_used=2)
    step = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
    assert judge(MissingZeroGrad, [BUILT, onto, step, onto, step]) == []


def test_update_by_hand_on_mixed_gradients_is_found():
    updates = [HandStepped(site=BACKWARD, moved=2), HandStepped(site=BACKWARD, moved=2, mixed=2)]
    (finding,) = judge(MissingZeroGrad, updates)
    assert "by hand" in finding.message
