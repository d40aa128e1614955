import pytest

from truestep.events import BackwardEnded, LossComputed, OptimizerStepped, OverlapRead, Site, TranscriptsRead
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.logits_into_probability_loss import LogitsIntoProbabilityLoss
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)
NLL, ADD, DIV, MSE = (BackwardEnded(root=f"{name}Backward0") for name in ("NllLoss", "Add", "Div", "MseLoss"))


def loss(made_by="AddmmBackward0", kind="nll_loss", **more):
    return LossComputed(kind=kind, site=LINE, input_rank=2, target_rank=1, classes=10, made_by=made_by, **more)


SOFTMAX, RAW, LATER = loss("SoftmaxBackward0"), loss(values="unbounded"), loss()
GOOD = loss("LogSoftmaxBackward0", values="log-probabilities")


@pytest.mark.parametrize("root", [NLL, DIV], ids=["by itself", "divided for accumulation"])
def test_nll_of_probabilities_is_found_at_the_loss(root):
    (finding,) = judge(LogitsIntoProbabilityLoss, [SOFTMAX, root, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "NLL got probabilities where it expects log-probabilities"
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)


def test_nll_of_logits_is_found_and_counted_when_values_are_looked_at_no_more():
    (finding,) = judge(LogitsIntoProbabilityLoss, [RAW, NLL, STEP, RAW, NLL, STEP, LATER, NLL, STEP])
    assert "got logits" in finding.message
    assert finding.seen.count == 3


@pytest.mark.parametrize("made_by", ["SoftmaxBackward0", "SigmoidBackward0"])
def test_kl_divergence_of_probabilities_is_found_in_any_expression(made_by):
    event = loss(made_by, kind="kl_div", reduction="batchmean")
    (finding,) = judge(LogitsIntoProbabilityLoss, [event, ADD, STEP] * 2)
    assert finding.confidence is Confidence.HIGH
    assert "second argument" in finding.help


def test_rows_that_sum_to_one_are_found_with_medium_confidence():
    (finding,) = judge(
        LogitsIntoProbabilityLoss, [loss("DivBackward0", kind="kl_div", values="probabilities"), STEP] * 2
    )
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "events",
    [
        [GOOD, NLL],
        [loss("LogBackward0", values="log-probabilities"), NLL],
        [loss("LogBackward0", kind="kl_div", values="unbounded"), ADD],
        [loss("LogSoftmaxBackward0", kind="kl_div"), ADD],
        [LATER, NLL],
        [RAW, ADD],
        [RAW, MSE],
        [loss("SoftmaxBackward0", reduction="none"), NLL],
        [loss("SoftmaxBackward0", grad=False), NLL],
        [SOFTMAX, GOOD, NLL],
        [loss("SoftmaxBackward0", kind="mse_loss"), MSE],
    ],
    ids=[
        "log_softmax", "logarithm", "masses above one", "kl of log_softmax", "values not seen", "with logsumexp",
        "picked q values", "picked probabilities", "a metric", "picked beside a loss", "brier score",
    ],
)  # fmt: skip
def test_healthy_losses_are_quiet(events):
    assert judge(LogitsIntoProbabilityLoss, [*events, STEP] * 4) == []


def test_one_such_loss_is_quiet():
    assert judge(LogitsIntoProbabilityLoss, [SOFTMAX, NLL, STEP]) == []


def test_a_run_without_a_loss_function_is_not_observed():
    verdict = LogitsIntoProbabilityLoss().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (
        Outcome.NOT_OBSERVED,
        "no NLL loss, KL divergence, CTC loss or overlap of scores with gradients",
    )


def transcripts(values="log-probabilities", blanks=0):
    return TranscriptsRead(values=values, blanks=blanks, site=LINE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("others", "the CTC loss got numbers other than log-probabilities"),
        ("probabilities", "the CTC loss got probabilities"),
    ],
)
def test_a_ctc_loss_of_other_numbers_than_log_probabilities_is_found(values, message):
    (finding,) = judge(LogitsIntoProbabilityLoss, [transcripts(values)] * 3)
    assert (finding.primary.site, finding.message, finding.seen.count) == (LINE, message, 3)


def test_targets_with_the_blank_are_found():
    (finding,) = judge(LogitsIntoProbabilityLoss, [transcripts(blanks=8)] * 3)
    assert finding.message == "the targets of the CTC loss include its blank, 0"


@pytest.mark.parametrize(
    "events",
    [
        [transcripts()] * 3,
        [transcripts("others")],
        [transcripts("others"), transcripts()],
        [transcripts(blanks=1)] * 3,
        [transcripts(blanks=8), transcripts(), transcripts()],
    ],
)
def test_sound_transcripts_are_quiet(events):
    assert not judge(LogitsIntoProbabilityLoss, events)


def overlaps(*outside, shared=False, scores=True):
    return [OverlapRead(site=LINE, scores=scores, shared=shared, outside=one, crossed=not scores) for one in outside]


@pytest.mark.parametrize("events", [overlaps(False, False, False, shared=True), overlaps(False, True, True, True)])
def test_an_overlap_of_scores_is_found_at_the_backward_pass(events):
    (finding,) = judge(LogitsIntoProbabilityLoss, events)
    assert finding.primary.site == LINE
    assert "is computed from the scores of a layer" in finding.message
    assert (finding.seen.count, finding.seen.total, finding.confidence) == (3, len(events), Confidence.MEDIUM)


@pytest.mark.parametrize(
    "events",
    [
        overlaps(False, False, shared=True),
        overlaps(True, False, False, False),
        overlaps(True, True, True, False),
        overlaps(True, True, True, scores=False),
    ],
    ids=["few", "within the range", "comes into the range", "softmax"],
)
def test_overlaps_of_few_steps_or_in_their_range_are_quiet(events):
    assert not judge(LogitsIntoProbabilityLoss, events)
