from truestep.events import BackwardEnded, ModelCalled, ModelMet, OptimizerBuilt, OptimizerStepped, Site, TapeRead
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.training_without_grad import TrainingWithoutGrad
from truestep.testing import judge

CALL, BACKWARD, STEP = Site("train.py", 20, 8), Site("train.py", 22, 8), Site("train.py", 23, 8)
MET = [ModelMet(model=1, name="net", parameters=(1, 2)), OptimizerBuilt(optimizer=1, parameters=(1, 2))]
BLIND = ModelCalled(model=1, site=CALL, grad=False, tracked=False)
LEAF = BackwardEnded(site=BACKWARD, root="leaf", observed=2)
EMPTY = OptimizerStepped(optimizer=1, site=STEP, observed=2, absent_grad=2)


def test_training_calls_without_gradients_are_found_at_the_call():
    (finding,) = judge(TrainingWithoutGrad, [*MET, *[BLIND, LEAF, EMPTY] * 3])
    assert finding.primary.site == CALL
    assert [mark.site for mark in finding.related] == [BACKWARD, STEP]
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (3, 3, 0)
    assert "0 of the 2" in finding.cost


def test_a_leaf_seen_on_the_tape_is_enough():
    step = [BLIND, TapeRead(site=BACKWARD, leaf_root=True), BackwardEnded(site=BACKWARD), EMPTY]
    assert len(judge(TrainingWithoutGrad, [*MET, *step * 2])) == 1


def test_one_such_step_is_quiet():
    assert judge(TrainingWithoutGrad, [*MET, BLIND, LEAF, EMPTY]) == []


def test_frozen_features_with_a_trained_head_are_quiet():
    step = [BLIND, ModelCalled(model=2), BackwardEnded(root="NllLossBackward0", written=2)]
    assert judge(TrainingWithoutGrad, [*MET, *[*step, OptimizerStepped(optimizer=1, observed=2, fresh=2)] * 3]) == []


def test_a_graph_cut_after_a_call_with_gradients_is_left_to_its_own_rule():
    assert judge(TrainingWithoutGrad, [*MET, *[ModelCalled(model=1, site=CALL), LEAF, EMPTY] * 3]) == []


def test_evolution_strategies_are_quiet():
    step = OptimizerStepped(optimizer=1, site=STEP, observed=2, by_hand=2)
    assert judge(TrainingWithoutGrad, [*MET, *[BLIND, step] * 3]) == []


def test_a_parameter_that_is_its_own_loss_is_quiet():
    step = [
        BLIND,
        BackwardEnded(root="leaf", observed=1, written=1),
        OptimizerStepped(optimizer=1, observed=1, fresh=1),
    ]
    assert judge(TrainingWithoutGrad, [*MET, *step * 3]) == []


def test_a_run_without_a_backward_pass_is_not_observed():
    verdict = TrainingWithoutGrad().verdict(Progress(met={ModelCalled, OptimizerStepped}))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no backward pass")
