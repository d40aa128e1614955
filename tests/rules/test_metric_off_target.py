"""Comparisons of a result with the wrong targets are reported by their mistake; sound ones are not."""

import pytest

from truestep.events import LogitsRead, LossComputed, ModelMet, ResultCompared, Site
from truestep.rules.metric_off_target import MetricOffTarget
from truestep.testing import judge

CALL, COMPARED = Site("train.py", 20, 8), Site("metrics.py", 5, 4)
MET = ModelMet(model=1, name="net", parameters=(1,))
LOGITS = LossComputed(kind="binary_cross_entropy_with_logits", site=Site("train.py", 12))


def compared(how, **more):
    facts = {"predicted": (30,), "target": (30, 1), "samples": 30, "site": COMPARED, "call": CALL} | more
    return ResultCompared(model=1, how=how, **facts)


@pytest.mark.parametrize("how", ["broadcast", "one", "samples", "all", "scores"])
def test_a_mistake_is_found_at_the_comparison(how):
    (finding,) = judge(MetricOffTarget, [MET, compared(how), compared(how)])
    assert finding.primary.site == COMPARED
    assert finding.primary.label == "predictions (30,), targets (30, 1)"
    assert finding.seen.count == 2
    assert [mark.label for mark in finding.related] == ["the call"]


def test_targets_of_other_rows_are_found_at_the_call():
    (finding,) = judge(MetricOffTarget, [MET, compared("rows")])
    assert finding.primary.site == CALL
    assert finding.related[0].site == COMPARED


def test_a_threshold_of_probabilities_is_found_for_logits_only():
    half = compared("threshold", target=(), outside=60)
    (finding,) = judge(MetricOffTarget, [MET, LOGITS, half])
    assert "60 %" in finding.primary.label
    assert judge(MetricOffTarget, [MET, half]) == []
    assert judge(MetricOffTarget, [MET, LOGITS, LossComputed(kind="mse_loss"), half]) == []
    assert judge(MetricOffTarget, [MET, LOGITS, compared("threshold", target=(), outside=3)]) == []


def test_a_threshold_of_probabilities_is_found_for_a_loss_that_squashes_by_hand():
    half = compared("threshold", target=(), outside=60)
    squashed, plain = LogitsRead(model=1, squashed=True), LogitsRead(model=1)
    (finding,) = judge(MetricOffTarget, [MET, squashed, LossComputed(kind="mse_loss"), half])
    assert finding.primary.site == COMPARED
    assert judge(MetricOffTarget, [MET, plain, half]) == []
    assert judge(MetricOffTarget, [MET, plain, squashed, half]) == []
    assert judge(MetricOffTarget, [MET, LogitsRead(model=2, squashed=True), half]) == []


def read(equal, plain, samples=50, **more):
    counts = {"equal": equal, "plain": plain, "labels": ((0, samples // 2), (1, samples - samples // 2))}
    return compared("", target=(samples,), **counts | more)


def test_predictions_that_miss_what_the_scores_show_are_found():
    (finding,) = judge(MetricOffTarget, [MET, read(20, 44), read(22, 46)])
    assert finding.primary.site == COMPARED
    assert finding.primary.label == "42 of 100 are right, and 90 by the scores themselves"


def test_predictions_that_can_be_meant_begin_the_count_again():
    assert judge(MetricOffTarget, [MET, read(20, 44), read(22, 46), read(40, None)]) == []
    assert len(judge(MetricOffTarget, [MET, read(40, None), read(20, 44), read(22, 46)])) == 1


@pytest.mark.parametrize("events", [[read(20, 44)], [read(30, 40), read(32, 42)], [read(40, 40), read(38, 38)]])
def test_few_predictions_and_small_differences_are_quiet(events):
    assert judge(MetricOffTarget, [MET, *events]) == []


def test_second_best_classes_beside_the_best_ones_are_quiet():
    best = read(90, 90, 100, site=Site("metrics.py", 4, 4))
    assert judge(MetricOffTarget, [MET, best, read(5, 90, 100)]) == []


def test_a_sound_comparison_is_quiet():
    assert judge(MetricOffTarget, [MET, compared("", target=(30,))] * 3) == []


@pytest.mark.parametrize("how", ["cancelled", "spread", "swapped", "itself"])
def test_a_mistake_of_errors_is_found_with_its_source(how):
    (finding,) = judge(MetricOffTarget, [MET, compared(how, name="r2_score(p, y)")])
    assert finding.primary.site == COMPARED
    assert finding.primary.label == "`r2_score(p, y)`"


def test_another_scale_is_one_finding_for_a_call_with_both_scales():
    spreads = (0.1, 1.0, 300.0, 80.0, 0.0, 1.1)
    events = [compared("scale", spreads=spreads, site=Site("metrics.py", line, 4)) for line in (5, 6)]
    (finding,) = judge(MetricOffTarget, [MET, *events])
    assert finding.primary.label == "predictions 0.1 +- 1, targets 300 +- 80; trained on 0 +- 1.1"
    assert finding.primary.site == COMPARED


def test_padding_is_found_with_its_share():
    (finding,) = judge(MetricOffTarget, [MET, compared("padding", name="right / n", outside=40)])
    assert finding.primary.label == "40 % of the targets are padding"


def test_averages_over_batches_belong_to_another_rule():
    assert judge(MetricOffTarget, [MET, *(compared(how, name="a / b") for how in ("means", "counts", "first"))]) == []
