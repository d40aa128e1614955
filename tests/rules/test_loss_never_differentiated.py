import pytest

from truestep.events import LossComputed, LossFollowed, ModelCalled, OptimizerStepped, RunEnded, Site, TapeRead
from truestep.findings import Confidence
from truestep.rules.loss_never_differentiated import LossNeverDifferentiated
from truestep.testing import judge

USED, LEFT, STEP = Site("train.py", 9), Site("train.py", 10), Site("train.py", 12)
END = RunEnded(how="finished")


def steps(count, *losses):
    """Return the events of sampled steps, each with a line and whether its loss is differentiated."""
    followed = [LossFollowed(kind="mse_loss", site=site, differentiated=used) for site, used in losses]
    return [*followed, TapeRead(), OptimizerStepped(optimizer=1, fresh=1, observed=1, site=STEP)] * count


def test_a_loss_beside_one_that_is_differentiated():
    (finding,) = judge(LossNeverDifferentiated, [*steps(5, (USED, True), (LEFT, False)), END])
    assert finding.primary.site == LEFT
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the `mse_loss` of this line is never differentiated"
    assert finding.seen.count == 5


def test_a_loss_beside_one_that_the_script_writes_out():
    (finding,) = judge(LossNeverDifferentiated, [*steps(5, (LEFT, False)), END])
    assert finding.primary.site == LEFT


def test_losses_of_an_evaluation_with_graphs_are_quiet():
    called = [ModelCalled(model=1, training=training, grad=True, tracked=True) for training in (True, False)]
    assert judge(LossNeverDifferentiated, [*called, *steps(5, (USED, True), (LEFT, False)), END]) == []
    (_,) = judge(LossNeverDifferentiated, [called[0], *steps(5, (USED, True), (LEFT, False)), END])


@pytest.mark.parametrize("given", [("model(x_val)", "y"), ("output[idx_test]", "labels"), ("net(X_Valid)", "y")])
def test_losses_of_data_that_is_named_for_an_evaluation_are_quiet(given):
    computed = LossComputed(kind="mse_loss", site=LEFT, given=given)
    assert judge(LossNeverDifferentiated, [computed, *steps(5, (USED, True), (LEFT, False)), END]) == []


@pytest.mark.parametrize("given", [("value", "returns"), ("latest", "y"), ("evaluated", "contest")])
def test_other_names_do_not_silence(given):
    computed = LossComputed(kind="mse_loss", site=LEFT, given=given)
    (_,) = judge(LossNeverDifferentiated, [computed, *steps(5, (USED, True), (LEFT, False)), END])


def test_a_backward_pass_behind_the_loop_over_tasks():
    last = LossFollowed(kind="mse_loss", site=USED, differentiated=True, only_last=True)
    every = LossFollowed(kind="mse_loss", site=USED, differentiated=True)
    (finding,) = judge(LossNeverDifferentiated, [*[last, TapeRead()] * 3, END])
    assert finding.message == "of several `mse_loss` losses in each step only the last one is differentiated"
    assert judge(LossNeverDifferentiated, [*[last, TapeRead()] * 3, every, END]) == []


@pytest.mark.parametrize(
    "events",
    [
        [*steps(5, (USED, True), (LEFT, False)), *steps(1, (LEFT, True)), END],
        [*steps(9, (USED, True)), *steps(3, (USED, True), (LEFT, False)), END],
        [*steps(2, (USED, True), (LEFT, False)), END],
        [*steps(5, (USED, True), (LEFT, False)), RunEnded(how="interrupted")],
    ],
    ids=["once differentiated", "now and then", "few steps", "interrupted"],
)
def test_other_losses_are_quiet(events):
    assert judge(LossNeverDifferentiated, events) == []
