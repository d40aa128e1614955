from truestep.events import (
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    Site,
    TapeRead,
)
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.optimizer_holds_stale_parameters import OptimizerHoldsStaleParameters
from truestep.supervision.judge import Judge
from truestep.testing import judge

BUILT, CALLED = Site("train.py", 12, 4), Site("train.py", 20, 4)
BODY = [ParameterMet(parameter=1, name="body.weight", shape=(8, 4), model=1)]
HEAD = [
    ParameterMet(parameter=2, name="fc.weight", shape=(3, 8), model=1),
    ParameterMet(parameter=3, name="fc.bias", shape=(3,), model=1),
]
OLD = [ParameterMet(parameter=8, name="", shape=(10, 8)), ParameterMet(parameter=9, name="", shape=(10,))]
NET = ModelMet(model=1, name="net", parameters=(1, 2, 3), site=CALLED)
READ = TapeRead(reached=(1, 2, 3), forwarded=(1, 2, 3))


def run(held, absent, unchanged=(2, 3, 8, 9), met=(*BODY, *HEAD, *OLD, NET), read=READ, steps=10, **more):
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=held, site=BUILT)
    step = OptimizerStepped(optimizer=1, observed=len(held), absent_grad=absent, **more)
    trained = [event for _ in range(steps) for event in (read, step)]
    moved = tuple({1, 2, 3, 8, 9} - set(unchanged))
    return [*met, built, *trained, ParametersUnchanged(parameters=unchanged, moved=moved, steps=steps)]


def test_a_head_replaced_after_the_optimizer_is_found_where_it_is_built():
    (finding,) = judge(OptimizerHoldsStaleParameters, run((1, 8, 9), 2))
    assert finding.primary.site == BUILT
    assert finding.related[0].site == CALLED
    assert "fc.weight, fc.bias" in finding.related[0].label
    assert (finding.seen.count, finding.seen.total) == (2, 3)
    assert "10 steps" in finding.cost
    assert "opt" in finding.help


def test_a_model_built_again_after_the_optimizer_is_found():
    old = [ParameterMet(parameter=7, name="", shape=(8, 4))]
    met = [*BODY, ModelMet(model=1, parameters=(1,)), *old]
    events = run((7,), 1, unchanged=(1, 7), met=met, read=TapeRead(reached=(1,)))
    assert len(judge(OptimizerHoldsStaleParameters, events)) == 1


def test_a_head_replaced_in_the_middle_of_the_run_is_found():
    first = ModelMet(model=1, name="net", parameters=(1, 8, 9), site=CALLED)
    before = [TapeRead(reached=(1, 8, 9)), OptimizerStepped(optimizer=1, observed=3, fresh=3)] * 5
    events = [*BODY, *OLD, first, *before, *run((1, 8, 9), 2, met=[*HEAD, NET])]
    assert len(judge(OptimizerHoldsStaleParameters, events)) == 1


def test_a_model_whose_calls_are_only_counted_is_in_use():
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=(8, 9), site=BUILT)
    chunk = [ModelCalled(model=1), READ, OptimizerStepped(optimizer=1, observed=2, absent_grad=2)]
    looked = [*chunk[:2], ParametersUnchanged(parameters=(2, 3, 8, 9), steps=10), chunk[2]]
    judge = Judge([OptimizerHoldsStaleParameters])
    judge.show([*BODY, *HEAD, *OLD, NET, built, *chunk], (0, 1))
    judge.show(chunk, (1, 2))
    judge.again(chunk, (1, 2), 10)
    judge.show(looked, (2, 3))
    judge.again(chunk, (1, 2), 50)
    judge.end("finished")
    assert [finding.primary.site for finding in judge.findings()] == [BUILT]


def test_an_optimizer_of_the_model_in_use_is_quiet():
    assert judge(OptimizerHoldsStaleParameters, run((1, 2, 3), 0, unchanged=())) == []


def test_an_unused_layer_of_a_model_in_use_is_quiet():
    net = ModelMet(model=1, parameters=(1, 2, 3, 8, 9))
    assert judge(OptimizerHoldsStaleParameters, run((1, 2, 3, 8, 9), 2, met=[*BODY, *HEAD, *OLD, net])) == []


def test_master_copies_with_gradients_by_hand_are_quiet():
    assert judge(OptimizerHoldsStaleParameters, run((8, 9), 0, by_hand=2, unchanged=())) == []


def test_new_parameters_that_move_are_quiet():
    assert judge(OptimizerHoldsStaleParameters, run((1, 8, 9), 2, unchanged=(8, 9))) == []


def test_parameters_of_another_phase_are_quiet():
    later = TapeRead(reached=(1, 2, 3, 8, 9))
    events = [*run((1, 8, 9), 2, steps=5), later, ParametersUnchanged(parameters=(2, 3), moved=(1, 8, 9), steps=5)]
    assert judge(OptimizerHoldsStaleParameters, events) == []


def test_a_run_that_was_stopped_early_is_quiet():
    assert judge(OptimizerHoldsStaleParameters, run((1, 8, 9), 2, steps=5), ended="stopped") == []


def test_a_run_without_a_tape_is_not_observed():
    verdict = OptimizerHoldsStaleParameters().verdict(Progress(met={OptimizerStepped}))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no readable autograd tape")


def test_a_model_that_is_no_longer_called_is_not_in_use():
    old, new = (
        ModelMet(model=1, name="net", parameters=(1,)),
        ModelMet(model=2, name="net", parameters=(4,), site=CALLED),
    )
    met = [*BODY, ParameterMet(parameter=4, name="body.weight", shape=(8, 4), model=2)]
    first = [ModelCalled(model=1), TapeRead(reached=(1,)), OptimizerStepped(optimizer=1, observed=1, fresh=1)]
    then = [ModelCalled(model=2), TapeRead(reached=(4,)), OptimizerStepped(optimizer=1, observed=1, absent_grad=1)]
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=(1,), site=BUILT)
    events = [*met, old, built, *first * 12, new, *then * 15, ParametersUnchanged(parameters=(4,), steps=27)]
    (finding,) = judge(OptimizerHoldsStaleParameters, events)
    assert finding.primary.site == BUILT


def test_models_that_are_called_once_for_the_steps_of_two_optimizers_are_in_use():
    critic = [
        ParameterMet(parameter=20, name="critic.weight", shape=(2, 3), model=2),
        ModelMet(model=2, name="critic", parameters=(20,)),
    ]
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=(8, 9), site=BUILT)
    other = OptimizerBuilt(optimizer=2, name="opt_critic", parameters=(20,))
    calls = [ModelCalled(model=1), ModelCalled(model=2), READ]
    steps = [
        OptimizerStepped(optimizer=1, observed=2, absent_grad=2),
        OptimizerStepped(optimizer=2, observed=1, fresh=1),
    ]
    judge = Judge([OptimizerHoldsStaleParameters])
    judge.show([*BODY, *HEAD, *OLD, NET, *critic, built, other, *calls, *steps], (0, 1))
    judge.show([*calls, *steps], (1, 2))
    judge.again([*calls, *steps], (1, 2), 30)
    judge.end("finished")
    assert [finding.primary.site for finding in judge.findings()] == [BUILT]
