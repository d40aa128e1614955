import pytest

from truestep.events import FigureRead, ResultCompared, RunEnded, Site
from truestep.rules.metric_misreported import MetricMisreported
from truestep.testing import judge

PLACE, COMPARED = Site("train.py", 30), Site("train.py", 25)


def figure(value, name="val_acc", *, evaluations=1, **facts):
    known = {"batches": 3, "equal": 107, "samples": 120, "shares": 2.68, "last": (34, 40), "every": (180, 240)}
    return FigureRead(name=name, value=value, evaluations=evaluations, place=PLACE, site=COMPARED, **known | facts)


def found(*events, how="finished"):
    return judge(MetricMisreported, [*events, RunEnded(how=how)])


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (107 / 3, "the number of right predictions divided by the number of batches"),
        (2.68 / 120, "the sum of the shares of the batches divided by the number of samples"),
        (100 * 2.68 / 120, "the sum of the shares of the batches divided by the number of samples"),
        (34 / 120, "the right predictions of the last batch divided by the samples of all"),
    ],
)
def test_a_known_mistake_is_named(value, what):
    (finding,) = found(figure(value))
    assert finding.message == f"`val_acc` is {what}"
    assert finding.primary.site == PLACE
    assert "107 of 120 predictions are right: 0.8917" in finding.primary.label


def test_counts_that_go_on_are_named_after_two_evaluations():
    (finding,) = found(figure(107 / 120), figure(0.75, evaluations=2))
    assert finding.message == "`val_acc` is a share over all evaluations so far"
    assert found(figure(107 / 120), figure(0.75, evaluations=1)) == []


def test_a_quotient_without_a_name_needs_two_evaluations():
    assert found(figure(107 / 3, name="hits / n")) == []
    assert len(found(figure(107 / 3, name="hits / n"), figure(107 / 3, name="hits / n", evaluations=2))) == 1
    assert len(found(figure(107 / 3, name="hits / n", label="accuracy:"))) == 1


@pytest.mark.parametrize(
    "value",
    [107 / 120, 100 * 107 / 120, 13 / 120, 2.68 / 3, 0.892, 89.2, 107.0, 13.0, 0.5, float("nan")],
    ids=[
        "share",
        "percent",
        "error",
        "mean of batches",
        "rounded",
        "rounded percent",
        "count",
        "wrong",
        "other",
        "nan",
    ],
)
def test_usual_figures_are_quiet(value):
    assert found(figure(value)) == []


def test_a_share_above_one_is_reported_the_second_time():
    above = [figure(value, name="iou / batches", samples=0, batches=0) for value in (2.4, 3.1)]
    (finding,) = found(*above)
    assert finding.message == "`iou / batches` is above 1"
    assert found(above[0]) == []
    assert found(*(figure(value, name="iou / n", samples=0, batches=0, percent=True) for value in (2.4, 3.1))) == []
    assert found(*(figure(value, name="acc / n", samples=0, batches=0) for value in (2.4, 3.1))) == []


def test_a_variable_can_be_a_percentage_of_another_file():
    assert found(*(figure(value, name="test_iou", samples=0, batches=0) for value in (82.4, 83.1))) == []
    assert len(found(*(figure(value, name="test_iou", samples=0, batches=0) for value in (182.4, 183.1)))) == 1
    assert found(*(figure(155 / 3, equal=155, samples=300, shares=1.45) for _ in range(2))) == []


def test_a_run_that_failed_is_quiet():
    assert found(figure(107 / 3), how="crashed") == []


def compared(how, name="total / n", samples=50):
    return ResultCompared(model=1, how=how, name=name, samples=samples, site=PLACE, call=COMPARED)


def test_means_of_batches_divided_by_samples_are_found_at_the_division():
    (finding,) = found(compared("means"), compared("means"))
    assert finding.message == "`total / n` is the sum of the means of batches divided by the number of samples"
    assert finding.primary.site == PLACE
    assert finding.related[0].site == COMPARED
    assert finding.seen.count == 2
    assert found(compared("means", samples=1)) == []


def test_counts_divided_by_batches_are_found():
    (finding,) = found(compared("counts", name="right / batches"))
    assert finding.message == "`right / batches` is the number of right predictions divided by the number of batches"


def test_a_loop_that_ends_in_its_first_pass_is_found_at_the_statement():
    (finding,) = found(compared("first", name="return"))
    assert finding.message == "a `return` ends the loop of an evaluation in its first pass"


def test_other_comparisons_are_quiet():
    assert found(*(compared(how) for how in ("", "scale", "padding", "cancelled"))) == []
