import pytest

from truestep.events import GradientScaleRead, OptimizerBuilt, ScalerBuilt, Site
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.scaler_misused import ScalerMisused
from truestep.testing import judge

FIRST, UNSCALE, SECOND, STEP = (Site("train.py", line, 8) for line in (30, 31, 32, 34))
MET = [OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2)), ScalerBuilt(scaler=1)]


def read(**facts):
    return GradientScaleRead(**{"optimizer": 1, "site": STEP, "scaled": FIRST} | facts)


def test_a_step_past_the_scaler_is_found_at_the_step():
    (finding,) = judge(ScalerMisused, [*MET, *[read(scaler=False)] * 3])
    assert (finding.primary.site, finding.related[0].site) == (STEP, FIRST)
    assert (finding.seen.count, finding.seen.unit, finding.confidence) == (3, "sampled steps", Confidence.HIGH)
    assert "scaler.step(opt)" in finding.help


def test_adam_does_not_care_for_the_scale():
    adam = OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2), scale_free=True)
    (finding,) = judge(ScalerMisused, [adam, MET[1], read(scaler=False)])
    assert finding.confidence is Confidence.LOW


def test_a_loss_that_was_not_scaled_is_found_at_its_backward():
    (finding,) = judge(ScalerMisused, [*MET, read(plain=SECOND)])
    assert (finding.primary.site, finding.related[0].site) == (SECOND, STEP)


def test_a_backward_after_unscale_is_found_whoever_steps():
    for scaler in (True, False):
        (finding,) = judge(ScalerMisused, [*MET, read(scaler=scaler, late=SECOND, unscaled=UNSCALE)])
        assert (finding.primary.site, finding.related[0].site) == (SECOND, UNSCALE)
        assert "once" in finding.help


@pytest.mark.parametrize(
    "healthy",
    [read(), read(unscaled=UNSCALE, scaled=None), read(scaler=False, scaled=None, plain=FIRST)],
    ids=["through the scaler", "unscaled first", "an optimizer that has nothing to do with the scaler"],
)
def test_the_corrected_code_is_quiet(healthy):
    assert judge(ScalerMisused, [*MET, *[healthy] * 3]) == []


def test_a_run_without_a_scaler_is_not_observed():
    assert ScalerMisused().verdict(Progress()).reason == "no GradScaler"
