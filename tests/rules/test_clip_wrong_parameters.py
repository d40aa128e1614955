import math

from truestep.events import (
    BackwardEnded,
    GradientsClipped,
    GradientsZeroed,
    OptimizerBuilt,
    OptimizerStepped,
    ScalerStepped,
    Site,
)
from truestep.findings import Confidence
from truestep.rules.clip_wrong_parameters import ClipWrongParameters
from truestep.testing import judge

BACKWARD, CLIP, STEP = Site("train.py", 31, 8), Site("train.py", 32, 8), Site("train.py", 33, 8)
D = OptimizerBuilt(optimizer=1, name="opt_d", parameters=(1, 2))
G = OptimizerBuilt(optimizer=2, name="opt_g", parameters=(3, 4))
BACK = BackwardEnded(site=BACKWARD, observed=4, written=4)
D_STEP = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
G_STEP = OptimizerStepped(optimizer=2, site=Site("train.py", 40, 8), observed=2, fresh=2)
NOTHING = GradientsClipped(site=CLIP, given=0, observed=0)
OF_D = GradientsClipped(site=CLIP, given=2, observed=2, fresh=2, optimizer=1, optimizers=(1,))
OF_G = GradientsClipped(site=CLIP, given=2, observed=2, fresh=2, optimizer=2, optimizers=(2,))
STALE_G = GradientsClipped(site=CLIP, given=2, observed=2, used=2, optimizer=2, optimizers=(2,))
G_ZEROED = GradientsZeroed(optimizer=2, fresh=2, observed=2)


def test_a_clip_of_nothing_is_found():
    (finding,) = judge(ClipWrongParameters, [D, *[BACK, NOTHING, D_STEP] * 4])
    assert finding.primary.site == CLIP
    assert finding.related[0].site == STEP
    assert finding.primary.label == "it got no parameters"
    assert (finding.seen.count, finding.confidence) == (4, Confidence.HIGH)
    assert "opt_d" in finding.help


def test_a_clip_of_another_network_is_found():
    (finding,) = judge(ClipWrongParameters, [D, G, *[BACK, STALE_G, D_STEP] * 4])
    assert "opt_g" in finding.primary.label


def test_a_clip_of_another_network_that_is_then_cleared_is_found():
    (finding,) = judge(ClipWrongParameters, [D, G, *[BACK, OF_G, D_STEP, G_ZEROED, BACK, G_STEP] * 4])
    assert finding.seen.count == 4


def test_a_clip_of_parameters_that_no_optimizer_holds_is_found():
    copy = GradientsClipped(site=CLIP, given=12, observed=0, foreign=12)
    assert len(judge(ClipWrongParameters, [D, *[BACK, copy, D_STEP] * 4])) == 1


def test_clipping_each_network_for_its_own_step_is_quiet():
    assert judge(ClipWrongParameters, [D, G, *[BACK, OF_D, D_STEP, G_ZEROED, BACK, OF_G, G_STEP] * 4]) == []


def test_clipping_one_of_two_optimizers_on_the_same_backward_is_quiet():
    assert judge(ClipWrongParameters, [D, G, *[BACK, OF_G, D_STEP, G_STEP, G_ZEROED] * 4]) == []


def test_clipping_module_by_module_is_quiet():
    assert judge(ClipWrongParameters, [D, *[BACK, NOTHING, OF_D, D_STEP] * 4]) == []
    assert judge(ClipWrongParameters, [D, G, *[BACK, OF_D, OF_G, D_STEP, G_STEP] * 4]) == []


def test_clipping_a_part_of_a_model_is_quiet():
    part = GradientsClipped(site=CLIP, given=1, observed=1, fresh=1, unclipped=1, optimizer=1, optimizers=(1,))
    assert judge(ClipWrongParameters, [D, *[BACK, part, D_STEP] * 4]) == []


def test_a_clip_whose_parameters_were_not_looked_at_is_quiet():
    unseen = GradientsClipped(site=CLIP, given=30, observed=0)
    assert judge(ClipWrongParameters, [D, *[BACK, unseen, D_STEP] * 4]) == []


def test_clipping_a_half_precision_copy_is_quiet():
    copy = GradientsClipped(site=CLIP, given=2, observed=0, foreign=2)
    hand = OptimizerStepped(optimizer=1, site=STEP, observed=2, by_hand=2)
    assert judge(ClipWrongParameters, [D, *[BACK, copy, hand] * 4]) == []


def test_reading_a_norm_and_steps_that_a_scaler_skipped_are_quiet():
    norm = GradientsClipped(site=CLIP, given=2, observed=2, used=2, optimizer=2, optimizers=(2,), max_norm=math.inf)
    assert judge(ClipWrongParameters, [D, G, *[BACK, norm, D_STEP] * 4]) == []
    skipped = ScalerStepped(scaler=1, optimizer=2, skipped=True)
    assert judge(ClipWrongParameters, [D, G, *[BACK, OF_G, skipped, BACK, D_STEP] * 4]) == []
