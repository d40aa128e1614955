from truestep.events import LossRead, OptimizerBuilt, OptimizerStepped, RunEnded, Site, UpdateMeasured
from truestep.findings import Confidence
from truestep.rules.update_exceeds_weights import UpdateExceedsWeights
from truestep.testing import judge

BUILT, BACKWARD, STEP = Site("train.py", 5), Site("train.py", 9), Site("train.py", 10)
ADAM = OptimizerBuilt(optimizer=1, name="optimizer", kind="Adam", lr=5.0, site=BUILT)
END = RunEnded(how="finished")


def steps(*pairs, values=512, function="NllLoss"):
    """Return the events of steps with these losses and sizes of updates; None for a step that is not sampled."""
    events = [ADAM]
    for loss, ratio in pairs:
        events.append(LossRead(value=loss, site=BACKWARD, root=f"{function}Backward0", function=function))
        events += [] if ratio is None else [UpdateMeasured(optimizer=1, ratio=ratio, values=values, site=STEP)]
        events.append(OptimizerStepped(optimizer=1, fresh=1, observed=1, site=STEP))
    return [*events, END]


def test_a_first_update_after_which_the_loss_is_never_lower():
    (finding,) = judge(UpdateExceedsWeights, steps((1.5, 40.0), (900.0, 0.9), (20.0, 0.1)))
    assert finding.primary.site == BUILT
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "an early update of `optimizer` was 40 times as large as the weights"
    assert finding.cost == "the loss was 1.5 before it, 20 at last, and at most 900"
    assert finding.related[0].site == STEP


def test_a_jump_of_the_loss_that_ends_lower_has_medium_confidence():
    (finding,) = judge(UpdateExceedsWeights, steps((1.5, 40.0), (900.0, 0.9), (1.0, 0.1)))
    assert finding.confidence is Confidence.MEDIUM


def test_the_updates_after_one_that_was_not_measured():
    assert judge(UpdateExceedsWeights, steps((1.5, None), (900.0, 0.9), *[(40.0, 0.7)] * 4))
    assert not judge(UpdateExceedsWeights, steps((1.5, None), (900.0, 0.9), *[(40.0, 0.7)] * 3))
    assert not judge(UpdateExceedsWeights, steps((1.5, None), (900.0, 0.9), *[(35.0, 0.7)] * 4))
    assert not judge(UpdateExceedsWeights, steps((1.5, None), (9e3, 0.9), *[(1400.0, 0.7)] * 4, function="MseLoss"))
    assert judge(UpdateExceedsWeights, steps((1.5, None), (9e3, 0.9), *[(1600.0, 0.7)] * 4, function="MseLoss"))


def test_large_updates_that_the_loss_follows_are_healthy():
    assert not judge(UpdateExceedsWeights, steps((1.5, 40.0), (1.4, 0.9), (1.0, 0.1)))
    assert not judge(UpdateExceedsWeights, steps((1.5, 0.02), (9.4, 0.3), (19.0, 0.1)))


def test_a_model_of_few_values_begins_near_zero_by_chance():
    assert not judge(UpdateExceedsWeights, steps((1.5, 40.0), (900.0, 0.9), (20.0, 0.1), values=15))
