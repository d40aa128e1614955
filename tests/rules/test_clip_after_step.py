import math

import pytest

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
from truestep.rules import Progress
from truestep.rules.clip_after_step import ClipAfterStep
from truestep.rules.clip_before_backward import ClipBeforeBackward
from truestep.testing import judge

ZERO, BACKWARD, STEP, CLIP = (Site("train.py", line, 8) for line in (29, 31, 32, 33))
BUILT = OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2))
BEGIN = [BatchDrawn(loader=1), GradientsZeroed(site=ZERO, optimizer=1, used=2, observed=2), ModelCalled(model=1)]
BACK = BackwardEnded(site=BACKWARD, observed=2, written=2)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)


def clip(site=CLIP, **states):
    return GradientsClipped(**{"site": site, "given": 2, "observed": 2, "optimizer": 1, "optimizers": (1,)} | states)


def test_a_clip_behind_the_step_is_found():
    (finding,) = judge(ClipAfterStep, [BUILT, *[*BEGIN, BACK, STEPPED, clip(used=2)] * 4])
    assert finding.primary.site == CLIP
    assert finding.related[0].site == STEP
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (4, 4, 0)
    assert "opt.step()" in finding.help
    assert judge(ClipBeforeBackward, [BUILT, *[*BEGIN, BACK, STEPPED, clip(used=2)] * 4]) == []


def test_a_clip_behind_step_and_clearing_is_found():
    zeroed = GradientsZeroed(site=STEP, optimizer=1, used=2, observed=2)
    window = [BatchDrawn(loader=1), ModelCalled(model=1), BACK, STEPPED, zeroed, clip(absent_grad=2)]
    (finding,) = judge(ClipAfterStep, [BUILT, *window * 4])
    assert "already cleared" in finding.primary.label
    assert judge(ClipBeforeBackward, [BUILT, *window * 4]) == []


def test_a_clip_in_a_helper_is_placed_by_what_came_before_it():
    helper = Site("train.py", 5, 4, function="limit")
    (finding,) = judge(ClipAfterStep, [BUILT, *[*BEGIN, BACK, STEPPED, clip(helper, used=2)] * 4])
    assert finding.primary.site == helper


def test_a_single_clip_behind_a_step_has_low_confidence():
    (finding,) = judge(ClipAfterStep, [BUILT, *BEGIN, BACK, STEPPED, clip(used=2)])
    assert finding.confidence is Confidence.LOW


def test_a_clip_between_backward_and_step_is_quiet():
    assert judge(ClipAfterStep, [BUILT, *[*BEGIN, BACK, clip(fresh=2), STEPPED] * 4]) == []


@pytest.mark.parametrize("max_norm", [math.inf, 1e9, math.nan])
def test_reading_the_norm_is_quiet(max_norm):
    assert judge(ClipAfterStep, [BUILT, *[*BEGIN, BACK, STEPPED, clip(used=2, max_norm=max_norm)] * 4]) == []


def test_a_second_clip_behind_the_step_is_quiet():
    window = [*BEGIN, BACK, clip(Site("train.py", 31), fresh=2), STEPPED, clip(used=2)]
    assert judge(ClipAfterStep, [BUILT, *window * 4]) == []


def test_clipping_for_the_next_of_two_optimizers_is_quiet():
    other = OptimizerStepped(optimizer=2, site=STEP, observed=2, fresh=2)
    second = GradientsClipped(site=CLIP, given=2, observed=2, fresh=2, optimizer=1, optimizers=(1,))
    assert judge(ClipAfterStep, [BUILT, *[*BEGIN, BACK, other, second, STEPPED] * 4]) == []


def test_clipping_in_every_micro_batch_is_quiet():
    zeroed = GradientsZeroed(site=STEP, optimizer=1, used=2, observed=2)
    window = [BACK, clip(fresh=2), BACK, STEPPED, zeroed, clip(absent_grad=2)]
    assert judge(ClipAfterStep, [BUILT, *window * 4]) == []


def test_a_run_without_clipping_is_not_observed():
    assert ClipAfterStep().verdict(Progress()).reason == "no gradient clipping"
