from truestep.events import BackwardEnded, BatchStatisticsTaken, Event, ModelCalled, ModelMet, OptimizerStepped, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.batchnorm_tiny_batch import BatchnormTinyBatch
from truestep.testing import judge

CALL = Site("train.py", 20, 8)
MET: list[Event] = [ModelMet(model=1, name="net")]
REST: list[Event] = [BackwardEnded(), OptimizerStepped(optimizer=1)]
PLAIN: list[Event] = [ModelCalled(model=1, site=CALL), *REST]


def step(values: int, *, same: bool = False) -> list[Event]:
    taken = BatchStatisticsTaken(model=1, layers=2, values=values, kind="BatchNorm1d", same_input=same, site=CALL)
    return [ModelCalled(model=1, site=CALL), taken, *REST]


def run(*sampled: list[Event]) -> list[Event]:
    """Sampled steps, each with others after it."""
    return [*MET, *(event for events in sampled for event in [*events, *PLAIN * 5])]


def test_two_values_at_every_sampled_step_are_found():
    (finding,) = judge(BatchnormTinyBatch, run(*[step(2)] * 4))
    assert finding.primary.site == CALL
    assert "2 layers of BatchNorm1d" in finding.primary.label
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (4, 4, 0)


def test_three_values_are_quiet():
    assert judge(BatchnormTinyBatch, run(*[step(3)] * 6)) == []


def test_one_step_with_more_is_enough_to_be_quiet():
    assert judge(BatchnormTinyBatch, run(*[step(2)] * 5, step(16))) == []
    assert judge(BatchnormTinyBatch, run(step(16), *[step(2)] * 5)) == []


def test_a_few_steps_are_quiet():
    assert judge(BatchnormTinyBatch, [*MET, *step(2) * 6]) == []
    assert judge(BatchnormTinyBatch, run(*[step(2)] * 3)) == []


def test_a_training_that_was_looked_at_in_its_first_half_only_is_quiet():
    assert judge(BatchnormTinyBatch, [*run(*[step(2)] * 4), *PLAIN * 18]) == []


def test_one_batch_that_is_learned_by_heart_is_quiet():
    assert judge(BatchnormTinyBatch, run(step(2), *[step(2, same=True)] * 6)) == []


def test_calls_that_no_backward_pass_follows_are_quiet():
    events = [event for event in run(*[step(2)] * 6) if not isinstance(event, BackwardEnded)]
    assert judge(BatchnormTinyBatch, events) == []


def test_a_run_that_was_cut_short_is_not_judged():
    assert judge(BatchnormTinyBatch, run(*[step(2)] * 6), ended="interrupted") == []


def test_a_run_without_batch_normalisation_is_not_observed():
    verdict = BatchnormTinyBatch().verdict(Progress(met={ModelCalled, BackwardEnded}))
    assert verdict.outcome is Outcome.NOT_OBSERVED
    assert verdict.reason == "no batch normalisation in train mode"
