import pytest

from truestep.events import CheckSkipped, LoaderMet, ModelCalled, ModelMet, SamplesCompared, Site
from truestep.findings import Confidence, Outcome
from truestep.rules._rule import Progress
from truestep.rules.batch_first_missing import BatchFirstMissing
from truestep.testing import judge

LAYER = Site("train.py", 21, 8)
MET = [ModelMet(model=1, name="net"), LoaderMet(loader=1, shuffled=True), LoaderMet(loader=2)]
TRAINED = ModelCalled(model=1, loader=1)
MIXED = SamplesCompared(
    model=1,
    loader=2,
    samples=25,
    mixed=True,
    cause="batch_first",
    kind="LSTM",
    before=(25, 10, 4),
    after=(25, 10, 16),
    site=LAYER,
)


def test_the_layer_is_named_at_its_line():
    (finding,) = judge(BatchFirstMissing, [*MET, TRAINED, MIXED])
    assert finding.primary.site == LAYER
    assert finding.message == "LSTM processes the 25 samples of a batch as a sequence"
    assert finding.confidence is Confidence.MEDIUM
    assert finding.cost == "on a copy of `net`, the result for a sample changed with the other samples"


def test_a_layer_whose_mixing_does_not_reach_the_result_is_named_too():
    hidden = SamplesCompared(model=1, samples=8, cause="batch_first", kind="GRU", before=(8, 5, 2), after=(8, 5, 2))
    (finding,) = judge(BatchFirstMissing, [*MET, TRAINED, hidden])
    assert finding.cost == "on a copy of `net`, the layer output for a sample changed with the other samples"


@pytest.mark.parametrize(
    "compared",
    [
        SamplesCompared(model=1, loader=2, samples=25, site=LAYER),
        SamplesCompared(model=1, loader=2, samples=25, mixed=True, site=LAYER),
        SamplesCompared(model=1, samples=9, mixed=True, cause="view", kind="view", before=(9, 2), after=(2, 9)),
    ],
    ids=["not-mixed", "cause-unknown", "another-cause"],
)
def test_another_outcome_is_quiet(compared):
    assert judge(BatchFirstMissing, [*MET, TRAINED, compared]) == []


@pytest.mark.parametrize(
    "called", [ModelCalled(model=1, loader=2), ModelCalled(model=1), ModelCalled(model=2, loader=1)]
)
def test_a_model_not_trained_in_random_order_is_quiet(called):
    assert judge(BatchFirstMissing, [*MET, called, MIXED]) == []


def test_what_was_skipped_is_not_observed():
    rule, run = BatchFirstMissing(), Progress()
    assert rule.verdict(run).reason == SamplesCompared.absent
    rule.observe(CheckSkipped(check="samples", reason="the model was not checked: it has hooks"), run)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "the model was not checked: it has hooks")
    run.note(SamplesCompared(model=1))
    assert rule.verdict(run).outcome is Outcome.CLEAR
