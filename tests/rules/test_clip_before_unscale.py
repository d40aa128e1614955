import math

import pytest

from truestep.events import BackwardEnded, GradientsClipped, OptimizerBuilt, ScalerBuilt, Site
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.clip_before_unscale import ClipBeforeUnscale
from truestep.testing import judge

BACKWARD, CLIP = Site("train.py", 32, 8), Site("train.py", 33, 8)
MET = [OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2)), ScalerBuilt(scaler=1)]
BACK = BackwardEnded(site=BACKWARD, observed=2, written=2, scaled=True)


def clip(**states):
    return GradientsClipped(**{"site": CLIP, "given": 2, "observed": 2, "fresh": 2, "optimizer": 1} | states)


def test_a_clip_of_scaled_gradients_is_found():
    (finding,) = judge(ClipBeforeUnscale, [*MET, *[BACK, clip(scaled=True)] * 3])
    assert finding.primary.site == CLIP
    assert finding.related[0].site == BACKWARD
    assert "scaler.unscale_(opt)" in finding.help
    assert (finding.seen.count, finding.confidence) == (3, Confidence.HIGH)


def test_a_limit_multiplied_by_the_scale_has_low_confidence():
    (finding,) = judge(ClipBeforeUnscale, [*MET, BACK, clip(scaled=True, max_norm=65536.0)])
    assert finding.confidence is Confidence.LOW


def test_a_limit_near_a_small_first_scale_has_low_confidence():
    met = [MET[0], ScalerBuilt(scaler=1, scale=256.0)]
    (finding,) = judge(ClipBeforeUnscale, [*met, *[BACK, clip(scaled=True, max_norm=256.0)] * 3])
    assert finding.confidence is Confidence.LOW
    (finding,) = judge(ClipBeforeUnscale, [*met, *[BACK, clip(scaled=True, max_norm=1.0)] * 3])
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "quiet",
    [clip(), clip(scaled=True, max_norm=math.inf), clip(scaled=True, fresh=0, used=2)],
    ids=["unscaled", "only reads the norm", "after the step"],
)
def test_healthy_clips_are_quiet(quiet):
    assert judge(ClipBeforeUnscale, [*MET, *[BACK, quiet] * 3]) == []


def test_a_run_without_a_scaler_is_not_observed():
    assert ClipBeforeUnscale().verdict(Progress()).reason == "no GradScaler"
