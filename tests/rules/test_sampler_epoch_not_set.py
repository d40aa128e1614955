"""Complete passes in one epoch of a sampler that shuffles by it are reported; other passes are not."""

import pytest

from truestep.events import BatchDrawn, LoaderEnded, LoaderMet, LoaderStarted, OptimizerStepped, Site
from truestep.rules.sampler_epoch_not_set import SamplerEpochNotSet
from truestep.testing import judge

SITE = Site("train.py", 9)
MET = LoaderMet(loader=1, name="train_loader", parts=2, samples=300, batches=1, batch_size=96, site=SITE)


def trained(epoch, steps=2, ends=True):
    batch = [BatchDrawn(loader=1), OptimizerStepped(optimizer=1)]
    return [LoaderStarted(loader=1, epoch=epoch), *batch * steps, *[LoaderEnded(loader=1)] * ends]


def test_equal_epochs_are_found_at_the_loader():
    (finding,) = judge(SamplerEpochNotSet, [MET, *trained(0), *trained(0), *trained(0)])
    assert finding.primary.site == SITE
    assert "`train_loader`" in finding.message
    assert (finding.seen.count, finding.seen.total) == (3, 3)
    assert finding.cost == "the same 108 of 300 samples are left out of every pass"


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*trained(0), *trained(1), *trained(2)], id="set"),
        pytest.param([*trained(0), *trained(0, steps=0), *trained(1)], id="read without training"),
        pytest.param([*trained(0, ends=False), *trained(0)], id="left early"),
        pytest.param([*trained(-1), *trained(-1)], id="another order"),
        pytest.param([*trained(0), *trained(1), *trained(0)], id="phases"),
    ],
)
def test_other_passes_are_quiet(events):
    assert judge(SamplerEpochNotSet, [MET, *events]) == []
