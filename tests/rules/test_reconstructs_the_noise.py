from typing import Any

from truestep.events import LossRead, ModelMet, NoiseKept, RunEnded, Site
from truestep.rules.reconstructs_the_noise import ReconstructsTheNoise
from truestep.testing import judge

MET = ModelMet(model=1, name="denoiser", parameters=(1, 2))
MADE, LOSS, BACKWARD = Site("train.py", 7), Site("train.py", 8), Site("train.py", 9)
ENDED = RunEnded(how="finished")


def kept(**facts: Any) -> NoiseKept:
    return NoiseKept(**{"model": 1, "how": "noise", "site": LOSS, "made": MADE, "clean": "x", "samples": 40} | facts)


def read(root: str = "MseLossBackward0", function: str = "MseLoss") -> LossRead:
    return LossRead(value=0.5, site=BACKWARD, root=root, function=function)


def test_a_corrupted_target_is_reported_at_the_loss():
    (finding,) = judge(ReconstructsTheNoise, [MET, read(), kept(), ENDED])
    assert finding.primary.site == LOSS
    assert [(mark.site, mark.label) for mark in finding.related] == [(MADE, "corrupts `x`")]
    assert finding.seen.count == 40


def test_one_line_is_marked_once():
    (finding,) = judge(ReconstructsTheNoise, [MET, read(), kept(made=LOSS, how="zeros"), ENDED])
    assert finding.related == ()
    assert "zeros at random places" in finding.primary.label


def test_sums_of_terms_and_unknown_losses_are_not_reported():
    assert judge(ReconstructsTheNoise, [MET, read(root="AddBackward0"), kept(), ENDED]) == []
    assert judge(ReconstructsTheNoise, [MET, read(), read(function=""), kept(), ENDED]) == []
    assert judge(ReconstructsTheNoise, [MET, kept(), ENDED]) == []
