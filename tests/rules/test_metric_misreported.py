import pytest

from truestep.events import (
    ClassFigureRead,
    EvaluationRan,
    FigureOfTest,
    FigureRead,
    LoaderUnread,
    LossFigureRead,
    OptimizerStepped,
    PartUnused,
    ResultCompared,
    RunEnded,
    Site,
)
from truestep.findings import Confidence
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


def test_the_samples_of_another_part_as_divisor_are_named_after_two_evaluations():
    (finding,) = found(figure(107 / 1200), figure(100 / 1200, evaluations=2, equal=100))
    assert finding.message == "`val_acc` is the right predictions divided by 1,200, of 120 samples"
    assert found(figure(107 / 1200), figure(107 / 1200, evaluations=2)) == []
    assert found(figure(107 / 1200), figure(100 / 1210, evaluations=2, equal=100)) == []
    assert found(figure(107 / 1200.5), figure(100 / 1200.5, evaluations=2, equal=100)) == []


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


# --- figures by their names ------------------------------------------------------------------------------------------

CLASSES = ((40, 10, 5), (25, 4, 15), (30, 12, 6))
"""True positives, false positives and false negatives."""
BINARY = ((60, 20, 10), (40, 10, 20))


def share(figure, of=CLASSES):
    ratios = {
        "recall": [a / (a + c) for a, _, c in of],
        "precision": [a / (a + b) for a, b, _ in of],
        "f1": [2 * a / (2 * a + b + c) for a, b, c in of],
        "iou": [a / (a + b + c) for a, b, c in of],
    }
    return ratios[figure]


def mean(figure, of=CLASSES):
    return sum(share(figure, of)) / len(of)


def named(claim, *values, of=CLASSES, **facts):
    samples = sum(a + c for a, _, c in of)
    known = {"name": f"val_{claim}", "counts": ((samples, of),), "place": PLACE, "site": COMPARED}
    return ClassFigureRead(claim=claim, values=values, **known | facts)


def messages(*events):
    return [finding.message for finding in found(*events)]


def test_a_figure_that_is_another_one_is_named():
    assert messages(named("recall", *share("precision"))) == ["`val_recall` is the precision"]
    assert messages(named("balanced", mean("precision"))) == ["`val_balanced` is the precision"]
    counted = "`val_f1` is the precision: false negatives are counted as false positives are"
    assert messages(named("f1", mean("precision"))) == [counted]
    assert messages(named("iou", *share("f1"))) == ["`val_iou` is the F1 score"]
    parts = [(one + other) / 2 for one, other in zip(share("precision"), share("recall"), strict=True)]
    assert messages(named("f1", *parts)) == ["`val_f1` is the mean of precision and recall"]
    (finding,) = found(named("recall", 100 * mean("precision")))
    assert finding.primary.site == PLACE
    assert f"{mean('recall'):.4g} is right" in finding.primary.label


IN_BATCHES = (((14, 2, 0), (0, 0, 2)), ((13, 0, 2), (1, 2, 0)), ((16, 0, 0), (0, 0, 0)), ((12, 1, 1), (2, 1, 1))) * 3
WHOLE = ((165, 9, 9), (9, 9, 9))


@pytest.mark.parametrize("claim", ["recall", "precision", "f1"])
def test_a_mean_of_batches_without_a_class_is_another_figure(claim):
    zero = {"recall": [0, 1, 0, 2 / 3], "precision": [0, 1 / 3, 0, 2 / 3], "f1": [0, 0.5, 0, 2 / 3]}[claim]
    wrong = {"counts": ((192, WHOLE),), "batches": (IN_BATCHES,)}
    (message,) = messages(named(claim, sum(zero) / 4, **wrong))
    assert message.endswith("of 12 batches")
    assert messages(named(claim, sum(zero) / 4, **wrong | {"name": "val_dice"})) == []
    assert messages(named(claim, share(claim, WHOLE)[1], **wrong)) == []
    assert messages(named(claim, 0.1 + sum(zero) / 4, **wrong)) == []


@pytest.mark.parametrize(
    ("claim", "values"),
    [
        ("recall", share("recall")), ("recall", [mean("recall")]), ("recall", [95 / 121]), ("recall", [40 / 45]),
        ("recall", [100 * mean("recall")]), ("recall", [round(mean("recall"), 3)]), ("precision", [95 / 121]),
        ("f1", [mean("f1")]), ("f1", share("f1")), ("f1", [2 * mean("recall") * mean("precision") / (
            mean("recall") + mean("precision"))]), ("balanced", [mean("recall")]), ("recall", [0.123]),
        ("recall", [1.0]), ("precision", [16.0]), ("recall", [sum(share("recall")[1:]) / 2]),
        ("recall", [0.1, 0.2, 0.3]), ("f1", [0.5, 0.4, mean("f1")]),
    ],
)  # fmt: skip
def test_usual_figures_of_classes_are_quiet(claim, values):
    assert messages(named(claim, *values)) == []


def test_a_figure_of_two_classes_needs_two_evaluations():
    wrong = named("recall", share("precision", BINARY)[1], of=BINARY)
    later = ((62, 18, 8), (42, 8, 18))
    again = named("recall", share("precision", later)[1], of=later)
    assert messages(wrong) == []
    assert messages(wrong, again) == ["`val_recall` is the precision"]
    right = named("recall", share("recall", later)[1], of=later)
    assert messages(wrong, again, right) == []


def test_figures_of_equal_counts_say_nothing():
    even = ((40, 10, 10), (30, 5, 5), (20, 8, 8))
    assert messages(named("recall", *share("precision", even), of=even)) == []


def losses(claim, value, mean=2.5, total=10.0, number=4, name="ppl"):
    return LossFigureRead(
        claim=claim, name=name, values=(value,), losses=((mean, total, number),), place=PLACE, site=COMPARED
    )


def test_perplexities_and_bits_of_other_units_are_named():
    import math

    assert messages(losses("perplexity", 2**2.5)) == ["`ppl` is a power of 2, and its loss is in nats"]
    assert messages(losses("perplexity", math.exp(10.0))) == [
        "`ppl` is the exponential of the sum of the losses, not of their mean"
    ]
    assert messages(losses("bits", 2.5, name="bpc")) == ["`bpc` is a loss in nats"]
    sound = [("perplexity", math.exp(2.5)), ("perplexity", 12.3), ("bits", 2.5 / math.log(2)), ("bits", 8.0)]
    assert [messages(losses(claim, value)) for claim, value in sound] == [[]] * 4
    assert messages(losses("perplexity", math.inf, total=1e4)) == []
    assert messages(losses("perplexity", 2**2.5), losses("perplexity", math.exp(2.5))) == []


def test_the_figure_of_a_test_is_that_of_other_samples():
    test = FigureOfTest(name="test accuracy", place=PLACE, site=COMPARED)
    assert messages(test) == []
    assert messages(test, LoaderUnread(name="val_loader")) == []
    assert messages(LoaderUnread(name="test_loader")) == []
    for unread in (LoaderUnread(name="test_loader"), PartUnused(name="test")):
        (message,) = messages(test, unread)
        assert message == f"the figure of a test is that of other samples, and `{unread.name}` is never read"


PROGRAM = """from sklearn.metrics import average_precision_score, roc_auc_score
def evaluate(model, x, y):
    scores = model(x).sigmoid()
    report(y, scores)
    return roc_auc_score(y, scores > 0.5)


def report(y, scores):
    print(average_precision_score(y, scores > 0.5))


def unused(y, scores):
    print(roc_auc_score(y, scores > 0.5))


def main():
    print("AUC", evaluate(net, x, y))
"""


def test_formulas_count_in_functions_that_call_an_evaluation(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    ran = [EvaluationRan(path=str(path), first=first) for first in (2, 16)]
    places = [finding.primary.site for finding in judge(MetricMisreported, ran)]
    assert [(site.line, site.function) for site in places] == [(5, "evaluate"), (9, "report")]
    (called,) = judge(MetricMisreported, ran[1:])  # main names the function
    assert called.primary.site.line == 5
    assert judge(MetricMisreported, [EvaluationRan(path=str(path), first=0)]) == []
    assert judge(MetricMisreported, [EvaluationRan(path=str(tmp_path / "gone.py"), first=2)]) == []
    sound = tmp_path / "sound.py"
    sound.write_text(PROGRAM.replace(" > 0.5", ""))
    assert judge(MetricMisreported, [EvaluationRan(path=str(sound), first=2)]) == []


def test_a_loader_of_the_test_holds_another_part():
    test = FigureOfTest(name="test_dl", part="X_va", place=PLACE, site=COMPARED)
    assert messages(test) == []
    assert messages(test, PartUnused(name="X_te")) == [
        "the figure of a test is that of other samples, and `X_te` is never read"
    ]


def test_a_sum_that_goes_on_from_report_to_report_is_found_in_a_training(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def update(optimizer):\n    optimizer.step()\n\n"
        "def main(env, optimizer, every=20):\n    score = 0.0\n    for n in range(100):\n"
        "        score += env.play()\n        update(optimizer)\n"
        "        if n % every == 0:\n            print(score / every)\n\n"
        "def other(every=20):\n    total = 0.0\n    for n in range(100):\n        total += n * 2\n"
        "        if n % every == 0:\n            print(total / every)\n"
    )
    step = OptimizerStepped(optimizer=1, site=Site(str(path), 2, 4, function="update"))
    (finding,) = judge(MetricMisreported, [step, RunEnded(how="finished")])
    assert (finding.primary.site.line, finding.confidence) == (10, Confidence.MEDIUM)


def test_full_batches_where_the_last_is_smaller_are_reported_once_already():
    (finding,) = found(figure(480 / 640, equal=480, samples=540, batches=5, shares=4.44, last=(24, 28)))
    assert finding.message.endswith("is divided by 5 batches of 128 samples, and the last one is smaller")


def test_a_figure_of_nothing_right_shows_no_divisor():
    assert found(figure(0.0, equal=100, samples=200, batches=2, shares=1.0, last=(0, 100))) == []
