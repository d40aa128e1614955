import math
from dataclasses import replace

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsClipped,
    LossComputed,
    OptimizerBuilt,
    OptimizerStepped,
    Site,
    WindowMeasured,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.accumulation_not_normalised import AccumulationNotNormalised
from truestep.testing import judge

BACKWARD, STEP = Site("train.py", 29, 8), Site("train.py", 31, 12)
SGD = OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2))
ADAM = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2), scale_free=True)
DRAWN = BatchDrawn(loader=1)
BACK = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1)
ONTO = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2, loader=1)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
CLIPPED = GradientsClipped(site=STEP, given=2, observed=2, fresh=2, optimizer=1)
MICRO = [DRAWN, BACK, DRAWN, ONTO, DRAWN, ONTO, DRAWN, ONTO]
WINDOW = [*MICRO, STEPPED]


def measured(ratio):
    return WindowMeasured(optimizer=1, ratio=ratio, backwards=4, site=STEP)


def test_a_sum_of_batches_is_found_at_the_backward():
    (finding,) = judge(AccumulationNotNormalised, [SGD, *[*MICRO, measured(3.9), STEPPED] * 3])
    assert finding.primary.site == BACKWARD
    assert finding.related[0].site == STEP
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (3, 3, 0)
    assert "3.9x" in finding.cost
    assert finding.confidence is Confidence.HIGH


def test_a_sum_that_was_not_measured_has_medium_confidence():
    (finding,) = judge(AccumulationNotNormalised, [SGD, *WINDOW * 3])
    assert finding.confidence is Confidence.MEDIUM


def bare(ratio):
    """Return a window of batches that no loader made."""
    passes = [replace(event, loader=None, root="NllLossBackward0") for event in (BACK, ONTO, ONTO, ONTO)]
    return [*passes, measured(ratio), STEPPED]


def test_without_a_loader_gradients_in_one_direction_decide():
    (finding,) = judge(AccumulationNotNormalised, [SGD, *bare(3.8), *bare(3.6), *bare(2.4)])
    assert finding.primary.site == BACKWARD
    assert judge(AccumulationNotNormalised, [SGD, *bare(2.1) * 9]) == []


def test_a_short_window_at_the_end_of_an_epoch_does_not_hide_it():
    (finding,) = judge(AccumulationNotNormalised, [SGD, *WINDOW * 3, DRAWN, BACK, STEPPED, *WINDOW * 3])
    assert finding.seen.count == 6


def test_clipping_makes_it_matter_to_adam():
    (finding,) = judge(AccumulationNotNormalised, [ADAM, *[*MICRO, CLIPPED, STEPPED] * 3])
    assert finding.primary.site == BACKWARD


def test_adam_without_clipping_is_quiet():
    assert judge(AccumulationNotNormalised, [ADAM, *WINDOW * 3]) == []
    norm = GradientsClipped(site=STEP, given=2, observed=2, fresh=2, optimizer=1, max_norm=math.inf)
    assert judge(AccumulationNotNormalised, [ADAM, *[*MICRO, norm, STEPPED] * 3]) == []


def test_divided_losses_are_quiet():
    first = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1, divided=True)
    more = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2, loader=1, divided=True)
    assert judge(AccumulationNotNormalised, [SGD, *[DRAWN, first, DRAWN, more, STEPPED] * 3]) == []


def test_gradients_divided_before_the_step_are_quiet():
    assert judge(AccumulationNotNormalised, [SGD, *[*MICRO, measured(0.97), STEPPED] * 3]) == []
    assert judge(AccumulationNotNormalised, [SGD, *WINDOW * 3, *MICRO, measured(0.97), STEPPED]) == []


def test_one_window_of_noise_does_not_hide_the_others():
    windows = [[*MICRO, measured(ratio), STEPPED] for ratio in (3.2, 3.4, 3.1, 1.2)]
    (finding,) = judge(AccumulationNotNormalised, [SGD, *windows[0], *windows[1], *windows[2], *windows[3]])
    assert finding.seen.count == 4


def test_several_losses_of_one_batch_are_quiet():
    assert judge(AccumulationNotNormalised, [SGD, *[DRAWN, BACK, ONTO, ONTO, STEPPED] * 3]) == []
    other = BackwardEnded(site=STEP, observed=2, written=2, onto_fresh=2, loader=1)
    assert judge(AccumulationNotNormalised, [SGD, *[DRAWN, BACK, other, STEPPED] * 3]) == []


def test_backwards_without_a_loader_are_quiet():
    back = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2)
    assert judge(AccumulationNotNormalised, [SGD, *[back, back, back, STEPPED] * 3]) == []


def test_summed_losses_are_quiet():
    summed = LossComputed(kind="mse_loss", reduction="sum")
    assert judge(AccumulationNotNormalised, [SGD, *[summed, *WINDOW] * 3]) == []


def test_steps_that_a_scaler_skipped_are_no_accumulation():
    assert judge(AccumulationNotNormalised, [SGD, *[DRAWN, BACK, DRAWN, BACK, STEPPED] * 3]) == []


def test_cleared_gradients_are_no_accumulation():
    rule, run = AccumulationNotNormalised(), Progress()
    alone = replace(BACK, onto_fresh=0)
    for event in [SGD, DRAWN, alone, DRAWN, alone, STEPPED]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
    assert rule.verdict(run).reason == "no accumulation"


def test_one_backward_per_step_is_not_observed():
    rule, run = AccumulationNotNormalised(), Progress()
    for event in [SGD, DRAWN, BACK, STEPPED]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
    assert rule.verdict(run).reason == "no accumulation"


def test_a_sum_over_samples_written_by_hand_is_quiet():
    back = [
        BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=n, loader=1, root="SumBackward0") for n in (0, 2)
    ]
    assert judge(AccumulationNotNormalised, [SGD, *[DRAWN, back[0], DRAWN, back[1], STEPPED] * 4]) == []
