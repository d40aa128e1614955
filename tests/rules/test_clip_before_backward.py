import math

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsClipped,
    GradientsZeroed,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    Site,
)
from truestep.findings import Confidence
from truestep.rules.clip_after_step import ClipAfterStep
from truestep.rules.clip_before_backward import ClipBeforeBackward
from truestep.testing import judge

ZERO, CLIP, BACKWARD, STEP = (Site("train.py", line, 8) for line in (29, 31, 32, 33))
BUILT = OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2))
BEGIN = [BatchDrawn(loader=1), GradientsZeroed(site=ZERO, optimizer=1, used=2, observed=2), ModelCalled(model=1)]
BACK = BackwardEnded(site=BACKWARD, observed=2, written=2)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
MIXED = OptimizerStepped(optimizer=1, site=STEP, observed=2, mixed=2)


def clip(site=CLIP, **states):
    return GradientsClipped(**{"site": site, "given": 2, "observed": 2, "optimizer": 1, "optimizers": (1,)} | states)


def test_a_clip_of_absent_gradients_is_found():
    window = [*BEGIN, clip(absent_grad=2), BACK, STEPPED]
    (finding,) = judge(ClipBeforeBackward, [BUILT, *window * 4])
    assert finding.primary.site == CLIP
    assert [mark.site for mark in finding.related] == [BACKWARD, STEP]
    assert (finding.seen.count, finding.seen.first_step) == (4, 0)
    assert "opt.step()" in finding.help
    assert judge(ClipAfterStep, [BUILT, *window * 4]) == []


def test_a_clip_of_the_gradients_of_the_last_step_is_found():
    window = [BatchDrawn(loader=1), ModelCalled(model=1), clip(used=2), BACK, MIXED]
    (finding,) = judge(ClipBeforeBackward, [BUILT, *window * 4])
    assert "last step" in finding.primary.label
    assert judge(ClipAfterStep, [BUILT, *window * 4]) == []


def test_a_clip_by_value_of_absent_gradients_is_found():
    nothing = GradientsClipped(kind="value", site=CLIP, given=0, observed=0)
    assert len(judge(ClipBeforeBackward, [BUILT, *[*BEGIN, nothing, BACK, STEPPED] * 4])) == 1


def test_the_second_optimizer_of_a_gan_is_judged_by_its_own_step():
    other = OptimizerStepped(optimizer=2, site=Site("train.py", 20, 8), observed=2, fresh=2)
    window = [BACK, other, clip(used=2), BACK, STEPPED]
    assert len(judge(ClipBeforeBackward, [BUILT, *window * 4])) == 1
    assert judge(ClipAfterStep, [BUILT, *window * 4]) == []


def test_a_single_early_clip_has_low_confidence():
    (finding,) = judge(ClipBeforeBackward, [BUILT, *BEGIN, clip(absent_grad=2), BACK, STEPPED])
    assert finding.confidence is Confidence.LOW


def test_a_clip_between_backward_and_step_is_quiet():
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, BACK, clip(fresh=2), STEPPED] * 4]) == []


def test_an_early_clip_with_a_second_one_in_place_is_quiet():
    late = clip(Site("train.py", 33), fresh=2)
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, clip(absent_grad=2), BACK, late, STEPPED] * 4]) == []


def test_reading_the_norm_is_quiet():
    norm = clip(absent_grad=2, max_norm=math.inf)
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, norm, BACK, STEPPED] * 4]) == []


def test_a_clip_without_a_backward_behind_it_is_quiet():
    hand = OptimizerStepped(optimizer=1, site=STEP, observed=2, by_hand=2)
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, clip(absent_grad=2), hand] * 4]) == []


def test_clipping_the_part_that_this_loss_does_not_reach_is_quiet():
    part = GradientsClipped(site=Site("train.py", 33), given=1, observed=1, absent_grad=1, optimizer=1, optimizers=(1,))
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, BACK, part, STEPPED] * 4]) == []
