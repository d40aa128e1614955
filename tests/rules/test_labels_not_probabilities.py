import pytest

from truestep.events import LossComputed, OptimizerStepped, ProbabilitiesRead, Site
from truestep.findings import Outcome, Severity
from truestep.rules import Progress
from truestep.rules.labels_not_probabilities import LabelsNotProbabilities
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)
BINARY, CLASSES = "binary_cross_entropy_with_logits", "cross_entropy"


def look(kind, outside, lowest, highest, **more):
    return ProbabilitiesRead(kind=kind, site=LINE, outside=outside, lowest=lowest, highest=highest, **more)


MASK = look(BINARY, 20, 0.0, 255.0)


def test_a_mask_of_0_and_255_is_found_at_the_loss():
    (finding,) = judge(LabelsNotProbabilities, [MASK, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.severity is Severity.ERROR
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert finding.message == "binary cross entropy with logits got labels that are not probabilities"
    assert finding.help == "turn a mask of 0 and 255 into 0 and 1 with `(target > 0).float()`"


@pytest.mark.parametrize(
    ("event", "help"),
    [
        (look(BINARY, 50, -1.0, 1.0), "turn labels of -1 and 1"),
        (look(BINARY, 30, 1.0, 2.0), "give labels between 0 and 1"),
        (look(CLASSES, 40, -3.2, 4.1), "apply `softmax` to the labels"),
        (look(CLASSES, 100, -9.5, -0.1), "apply `softmax` to the labels"),
        (look("kl_div", 40, -3.2, 4.1), "apply `softmax` to the targets"),
        (look("kl_div", 100, -9.5, -0.1), "set `log_target=True`"),
        (look("kl_div", 100, 0.001, 0.9, logarithms=True), "leave out `log_target=True`"),
    ],
    ids=[
        "signs",
        "counted from 1",
        "logits",
        "log-probabilities",
        "KL logits",
        "KL log-probabilities",
        "KL logarithms",
    ],
)
def test_other_numbers_are_found(event, help):
    (finding,) = judge(LabelsNotProbabilities, [event, STEP] * 2)
    assert finding.help.startswith(help)


@pytest.mark.parametrize(
    "event",
    [
        look(BINARY, 0, 0.0, 1.0),
        look(BINARY, 0, -0.1, 1.2),
        look(BINARY, 100, -1.0, -1.0),
        look(CLASSES, 0, 0.0, 3.0),
        look(CLASSES, 12, -1.0, 1.0, dense=False),
        look(CLASSES, 4, -1.0, 1.0),
        look("kl_div", 0, 0.0, 1.0),
        look("kl_div", 0, -9.0, -0.1, logarithms=True),
        look("kl_div", 20, -9.0, 1.3, logarithms=True),
    ],
    ids=[
        "labels",
        "noisy labels",
        "a task without labels",
        "scaled one-hot",
        "rewards of actions",
        "few",
        "KL probabilities",
        "KL logarithms",
        "KL densities",
    ],
)
def test_healthy_labels_are_quiet(event):
    assert judge(LabelsNotProbabilities, [event, STEP] * 4) == []


@pytest.mark.parametrize("kind", [BINARY, CLASSES])
def test_swapped_arguments_are_named(kind):
    (finding,) = judge(LabelsNotProbabilities, [look(kind, 80, -40.0, 900.0, swapped=True), STEP] * 2)
    assert finding.help == "swap the arguments: the loss takes the output of the model first, then the labels"


def test_one_step_is_quiet():
    assert judge(LabelsNotProbabilities, [MASK, MASK, STEP]) == []


def test_verdicts():
    run = Progress()
    run.note(LossComputed(kind=BINARY))
    assert LabelsNotProbabilities().verdict(run).reason == ProbabilitiesRead.absent
    run.note(look(BINARY, 0, 0.0, 1.0))
    assert LabelsNotProbabilities().verdict(run).outcome is Outcome.CLEAR
