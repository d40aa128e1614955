from truestep.events import DivergenceRead, OptimizerStepped, RunEnded, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.kl_outweighs_reconstruction import KlOutweighsReconstruction
from truestep.testing import judge

LINE = Site("train.py", 32, 8)


def run(*, weight=64.0, nats=0.001, first=1.0, steps=120, how="finished"):
    events = []
    for step in range(steps):
        if step % 10 == 0:
            value = first if step < steps // 2 else nats
            events.append(DivergenceRead(site=LINE, weight=weight, nats=value, values=64))
        events.append(OptimizerStepped(optimizer=1, site=LINE))
    return [*events, RunEnded(how=how)]


def test_a_divergence_that_counts_as_often_as_a_sample_has_values_is_found():
    (finding,) = judge(KlOutweighsReconstruction, run())
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert "the reconstruction is a mean over 64 values" in finding.primary.label
    assert finding.cost.startswith("0.001 nats")


def test_another_large_factor_has_medium_confidence():
    (finding,) = judge(KlOutweighsReconstruction, run(weight=20.0))
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label == "20 times against a sum of the errors"


def test_a_divergence_of_the_bound_or_with_a_small_factor_is_quiet():
    assert judge(KlOutweighsReconstruction, run(weight=1.0)) == []
    assert judge(KlOutweighsReconstruction, run(weight=4.0)) == []


def test_latent_variables_that_carry_something_are_quiet():
    assert judge(KlOutweighsReconstruction, run(nats=0.3)) == []
    assert judge(KlOutweighsReconstruction, run(first=0.0, nats=0.7)) == []  # they begin with nothing


def test_short_and_stopped_runs_are_quiet():
    assert judge(KlOutweighsReconstruction, run(steps=90)) == []
    assert judge(KlOutweighsReconstruction, run(how="stopped")) == []


def test_a_run_without_a_divergence_is_not_observed():
    verdict = KlOutweighsReconstruction().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, DivergenceRead.absent)
