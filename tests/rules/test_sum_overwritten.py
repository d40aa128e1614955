"""A sum that is overwritten in a loop with several calls is reported; one that runs once is not."""

import pytest

from truestep.events import BackwardEnded, LoopRead, ModelCalled, ModelMet, OptimizerStepped, Site
from truestep.rules.sum_overwritten import SumOverwritten
from truestep.testing import judge

CALL, SUM = Site("train.py", 20, 8), Site("train.py", 21, 8)
MET = ModelMet(model=1, name="decoder", parameters=(1,))
CALLED = ModelCalled(model=1, site=CALL)
MEASURED = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False)
BACKWARD, STEP = BackwardEnded(observed=1, written=1), OptimizerStepped(optimizer=1)


def loop(use="differentiated", name="loss", trains=False):
    return LoopRead(model=1, site=CALL, name=name, use=use, trains=trains, place=SUM)


def test_a_loss_of_the_last_of_several_calls_is_found_at_the_assignment():
    (finding,) = judge(SumOverwritten, [MET, loop(), *[CALLED, CALLED, CALLED, BACKWARD, STEP] * 3])
    assert finding.primary.site == SUM
    assert finding.message == "`loss` holds the last pass of a loop only, and is differentiated"
    assert finding.help == "add up: `loss = loss + ...`"
    assert [mark.site for mark in finding.related] == [CALL]


@pytest.mark.parametrize(("use", "text"), [("divided", "is divided by a total"), ("divisor", "divides a total")])
def test_a_metric_of_the_last_batch_is_found(use, text):
    (finding,) = judge(SumOverwritten, [MET, loop(use, "correct"), *[CALLED, BACKWARD, STEP, *[MEASURED] * 4] * 2])
    assert text in finding.message


def test_a_mean_of_the_last_batch_of_a_training_loop_is_found():
    assert len(judge(SumOverwritten, [MET, loop("divided", trains=True), *[CALLED, BACKWARD, STEP] * 5])) == 1


def test_loops_with_one_call_and_loops_without_such_a_variable_are_quiet():
    once = [CALLED, BACKWARD, STEP, MEASURED]
    assert judge(SumOverwritten, [MET, loop("divided", "correct"), *once * 5]) == []
    assert judge(SumOverwritten, [MET, loop(name="", use=""), *[CALLED, CALLED, BACKWARD, STEP] * 5]) == []


def test_few_calls_are_quiet():
    assert judge(SumOverwritten, [MET, loop(), CALLED, CALLED, CALLED, BACKWARD, STEP]) == []


def test_a_metric_that_is_read_as_the_last_pass_of_an_evaluation_is_found():
    (finding,) = judge(SumOverwritten, [MET, loop("read", "accuracy"), BACKWARD, STEP, *[MEASURED] * 4])
    assert "is read as its result" in finding.message


def test_the_last_loss_of_calls_that_train_is_quiet():
    assert judge(SumOverwritten, [MET, loop("read"), *[CALLED, CALLED, BACKWARD, STEP] * 5]) == []


def test_a_sum_that_grows_over_several_evaluations_is_found_and_one_evaluation_is_quiet():
    once = [MEASURED, MEASURED, MEASURED, MEASURED]
    found = judge(SumOverwritten, [MET, loop("kept", "correct"), *[BACKWARD, STEP, *once] * 3])
    assert [finding.help for finding in found] == ["set to zero in each epoch: `correct = 0`"]
    assert judge(SumOverwritten, [MET, loop("kept", "correct"), BACKWARD, STEP, *once]) == []
