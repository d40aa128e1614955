import pytest

from truestep.events import (
    LossComputed,
    OptimizerStepped,
    OverlapRead,
    PartnersScored,
    PenaltyRead,
    ProbabilitiesRead,
    ResultCompared,
    SamplesCompared,
    Site,
    SoftmaxRead,
    UnitVectorsRead,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.softmax_wrong_dim import SoftmaxWrongDim
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)


def loss(over="", kind="nll_loss", rank=2, classes=10, target_rank=1, **more):
    return LossComputed(
        kind=kind, site=LINE, input_rank=rank, target_rank=target_rank, classes=classes, softmax_over=over, **more
    )


BATCH, ONE = loss("batch"), loss("one", kind="binary_cross_entropy", classes=1)


def test_a_softmax_over_the_batch_is_found_at_the_loss():
    (finding,) = judge(SoftmaxWrongDim, [BATCH, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "the softmax before nll_loss runs over the batch"
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)


def test_a_softmax_over_positions_is_found():
    (finding,) = judge(SoftmaxWrongDim, [loss("other", rank=4), STEP] * 2)
    assert "another dimension" in finding.message


@pytest.mark.parametrize("kind", ["binary_cross_entropy", "mse_loss", "kl_div"])
def test_a_softmax_over_one_number_is_found_before_any_loss(kind):
    (finding,) = judge(SoftmaxWrongDim, [loss("one", kind=kind, classes=1), STEP] * 2)
    assert "constant" in finding.cost


def test_cross_entropy_over_one_class_with_targets_that_are_no_indices_is_found():
    (finding,) = judge(SoftmaxWrongDim, [loss(kind="cross_entropy", classes=1, target_rank=2), STEP] * 2)
    assert finding.message.startswith("cross entropy takes the softmax of one class")


def test_scores_normalised_over_the_batch_before_cross_entropy_have_medium_confidence():
    (finding,) = judge(SoftmaxWrongDim, [loss("batch", kind="cross_entropy"), STEP] * 2)
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "event",
    [
        loss("classes"),
        loss(""),
        loss("batch", grad=False),
        loss("one", classes=1),
        loss(kind="cross_entropy", classes=1),
        loss("other", kind="cross_entropy", rank=4),
        loss("classes", kind="kl_div"),
    ],
    ids=["classes", "logits", "a metric", "one class", "one class by index", "attention over positions", "a ranking"],
)
def test_healthy_losses_are_quiet(event):
    assert judge(SoftmaxWrongDim, [event, STEP] * 4) == []


def test_lists_of_which_some_have_one_entry_are_quiet():
    short, long = loss("one", kind="kl_div"), loss("classes", kind="kl_div")
    assert judge(SoftmaxWrongDim, [short, STEP, short, STEP, long, STEP] * 3) == []
    assert judge(SoftmaxWrongDim, [long, STEP, short, STEP] * 3) == []


def test_a_last_batch_with_as_many_samples_as_classes_hides_nothing():
    assert len(judge(SoftmaxWrongDim, [*[BATCH, STEP] * 9, loss("classes"), STEP] * 2)) == 1


def test_one_such_loss_is_quiet():
    assert judge(SoftmaxWrongDim, [ONE, STEP]) == []


def test_a_run_without_a_loss_function_is_not_observed():
    verdict = SoftmaxWrongDim().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no loss function of torch")


def test_a_softmax_inside_a_model_over_its_samples_is_found():
    inside = SamplesCompared(
        model=1, samples=24, mixed=True, cause="softmax", kind="softmax", before=(24, 6), site=LINE
    )
    (finding,) = judge(SoftmaxWrongDim, [inside])
    assert finding.message == "a softmax inside `model` runs over the 24 samples of a batch"
    assert judge(SoftmaxWrongDim, [SamplesCompared(model=1, samples=24, mixed=True, cause="view", site=LINE)]) == []


def test_vectors_that_are_normalised_over_the_samples():
    def score(*columns):
        return [PartnersScored(site=Site("train.py", 20), rows=64, columns=one) for one in columns]

    (finding,) = judge(SoftmaxWrongDim, score(True, True, True))
    assert finding.primary.site == Site("train.py", 20)
    assert finding.message == "the vectors of the contrastive scores are normalised over the 64 samples of a batch"
    for seen in ((True, True), (True, True, True, False), (False, True, True, True)):
        assert judge(SoftmaxWrongDim, score(*seen)) == []


def test_an_overlap_of_a_softmax_across_the_classes_is_found_after_three_reads():
    event = OverlapRead(site=LINE, crossed=True)
    (finding,) = judge(SoftmaxWrongDim, [event, STEP] * 3)
    assert "runs over another dimension than the classes" in finding.message
    assert (finding.seen.count, finding.confidence) == (3, Confidence.MEDIUM)
    assert not judge(SoftmaxWrongDim, [event, STEP] * 2)
    assert not judge(SoftmaxWrongDim, [OverlapRead(site=LINE, scores=True), STEP] * 3)


def test_targets_that_sum_to_one_over_the_samples_are_found_at_two_steps():
    unlike = ProbabilitiesRead(kind="kl_div", site=LINE, over="samples")
    (finding,) = judge(SoftmaxWrongDim, [unlike, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the targets of kl_div sum to one over the samples, and its input is made for the classes"
    assert judge(SoftmaxWrongDim, [unlike, STEP]) == []
    assert judge(SoftmaxWrongDim, [ProbabilitiesRead(kind="kl_div", site=LINE), STEP] * 3) == []


SHARES = ResultCompared(
    model=1, how="shares", name="p[:, 1]", samples=50, predicted=(50, 10), site=Site("train.py", 40)
)


def test_a_softmax_over_the_samples_of_an_evaluation_is_found():
    (finding,) = judge(SoftmaxWrongDim, [loss(kind="cross_entropy"), STEP, SHARES])
    assert finding.primary.site == SHARES.site
    assert "over the 50 samples of a batch, not over the 10 classes" in finding.message


def test_a_softmax_of_another_number_of_scores_than_classes_is_quiet():
    assert judge(SoftmaxWrongDim, [loss(kind="cross_entropy", classes=5), STEP, SHARES]) == []
    assert judge(SoftmaxWrongDim, [loss(kind="mse_loss", rank=2, target_rank=2), STEP, SHARES]) == []


def use(over, kind="attention"):
    shape = (50, 4) if kind == "labels" else (32, 4, 9, 9)
    return SoftmaxRead(site=LINE, use=kind, over=over, shape=shape, dim=0 if kind == "labels" else 1)


@pytest.mark.parametrize(("over", "words"), [("queries", "over the queries"), ("heads", "that of the heads")])
def test_a_softmax_of_attention_over_other_dimensions_is_found_at_two_losses(over, words):
    assert judge(SoftmaxWrongDim, [use(over), STEP]) == []
    (finding,) = judge(SoftmaxWrongDim, [use(over), STEP, use(over), STEP])
    assert words in finding.message
    assert (finding.confidence, finding.seen.count) == (Confidence.MEDIUM, 2)


def test_labels_that_pick_from_a_softmax_over_samples_are_found():
    (finding,) = judge(SoftmaxWrongDim, [use("samples", "labels"), STEP] * 3)
    assert finding.message == "the softmax from which labels pick runs over the 50 samples of a batch"


def test_a_right_softmax_of_attention_clears_the_line():
    assert judge(SoftmaxWrongDim, [use("queries"), STEP] * 2 + [use("keys"), STEP]) == []


APART = UnitVectorsRead(site=LINE, apart=True, shape=(8, 5, 16), dim=1)


def test_products_of_vectors_with_a_norm_along_the_positions_are_found():
    (finding,) = judge(SoftmaxWrongDim, [APART, STEP] * 2)
    assert finding.message == "vectors are normalised over dimension 1, and multiplied over their features"
    assert finding.confidence is Confidence.MEDIUM
    assert finding.seen.count == 2


@pytest.mark.parametrize("before", [[APART], [APART, UnitVectorsRead(site=LINE)], [UnitVectorsRead(site=LINE), APART]])
def test_products_of_one_step_or_with_other_norms_are_not_reported(before):
    assert judge(SoftmaxWrongDim, [*before, STEP, *before[1:], STEP]) == []


def test_a_softmax_over_samples_inside_a_model_is_reported_once():
    over = SoftmaxRead(site=LINE, over="samples", shape=(8, 5, 5), dim=0)
    inside = SamplesCompared(model=1, site=LINE, cause="softmax", kind="softmax", samples=8, before=(8, 5, 5))
    (finding,) = judge(SoftmaxWrongDim, [over, STEP, over, inside, STEP])
    assert "the first dimension, such as that of the samples" in finding.message


@pytest.mark.parametrize(("over", "of"), [("position", "each position"), ("batch", "the whole batch")])
def test_gradient_penalties_of_other_norms_than_those_of_samples_are_found(over, of):
    read = PenaltyRead(site=LINE, over=over, shape=(8, 1, 16, 16))
    (finding,) = judge(SoftmaxWrongDim, [read, STEP] * 2)
    assert finding.message == f"the gradient penalty takes a norm of {of}, not of each sample"
    assert judge(SoftmaxWrongDim, [read, STEP]) == []
    assert judge(SoftmaxWrongDim, [read, STEP, read, STEP, PenaltyRead(site=LINE), STEP]) == []
