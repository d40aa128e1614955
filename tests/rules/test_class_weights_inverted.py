"""Weights of classes that follow the frequencies of the labels."""

import pytest

from truestep.events import LabelsCounted, LoaderMet, Site
from truestep.rules.class_weights_inverted import ClassWeightsInverted
from truestep.testing import judge

LOSS = Site("train.py", 20, 14)


def counted(counts, weights, kind="cross_entropy", labels=100):
    return LabelsCounted(
        kind=kind, site=LOSS, classes=len(counts), labels=labels, rows=100, counts=counts, weights=weights
    )


def binary(counts, weights):
    return counted(counts, weights, "binary_cross_entropy_with_logits", 100 * len(counts))


def test_weights_that_follow_the_counts_are_found():
    (finding,) = judge(ClassWeightsInverted, [counted((70, 20, 10), (0.7, 0.2, 0.1))] * 4)
    assert finding.primary.site == LOSS
    assert "class 0: 280 labels, weight 0.7" in finding.primary.label


def test_an_inverted_factor_of_positive_labels_is_found():
    (finding,) = judge(ClassWeightsInverted, [binary((10,), (0.1112347,))] * 4)
    assert "10%" in finding.primary.label


def test_weights_that_follow_the_roots_of_the_counts_are_found():
    (finding,) = judge(ClassWeightsInverted, [counted((70, 20, 10), (0.84, 0.45, 0.32))] * 4)
    assert finding.message == "the weights of the classes follow the roots of their frequencies"
    (finding,) = judge(ClassWeightsInverted, [binary((10,), (0.3354102,))] * 4)
    assert "is the root of the number of positive labels" in finding.message


def test_inverted_factors_of_several_columns_are_found():
    inverted = binary((10, 25, 48, 0), (0.1111, 0.3217, 0.9412, 0.01))
    (finding,) = judge(ClassWeightsInverted, [inverted] * 4)
    assert finding.primary.label == "column 0: 10% of the labels are positive, and their factor is 0.1111"
    pooled = binary((20,), (0.2517483,))
    (finding,) = judge(ClassWeightsInverted, [pooled] * 4)
    assert finding.primary.label == "20% of the labels are positive, and their factor is 0.2517"
    (finding,) = judge(ClassWeightsInverted, [binary((40, 90, 80), (0.6712437, 9.137245, 3.948124))] * 4)
    assert "column 1: 90%" in finding.primary.label


@pytest.mark.parametrize(
    "event",
    [
        counted((70, 20, 10), (1 / 0.7, 1 / 0.2, 1 / 0.1)),
        counted((70, 20, 10), (1.0, 1.0, 1.0)),
        counted((70, 20, 10), (1 / 0.84, 1 / 0.45, 1 / 0.32)),
        counted((70, 20, 10), (0.84, 0.45, 0.45)),
        binary((10,), (0.5,)),
        binary((19,), (0.5,)),
        counted((83, 17), (2.0, 1.0)),
        counted((34, 33, 33), (0.34, 0.33, 0.33)),
        counted((32, 25, 18, 14, 11), (1.44, 1.08, 0.78, 0.57, 0.45)),
        counted((80, 20), (0.1, 1.0)),
        counted((80, 20), (1.0, 0.0)),
        binary((10,), (9.0,)),
        binary((10,), (1.0,)),
        binary((10, 20), (9.0, 4.0)),
        binary((45,), (0.8181235,)),
        binary((20,), (0.25,)),
        binary((20,), (0.2517,)),
        binary((25,), (0.3333333,)),
        binary((20,), (0.3517483,)),
        binary((10, 25, 48, 0), (0.1111, 0.3217, 0.9412, 99.0)),
        binary((10, 1, 0), (0.1112347, 0.01010101, 0.01)),
        binary((10, 45, 48), (0.1112347, 0.8217532, 0.9412734)),
        binary((10, 25), (0.1, 0.3)),
        binary((10, 25, 40), (0.3333125, 0.5774123, 0.0)),
    ],
    ids=[
        "inverse", "uniform", "roots", "near roots", "half", "half by chance", "twice by chance", "balanced",
        "shares of a sample",
        "background", "one class", "factor", "one", "columns", "near half", "a quarter", "a tuned factor", "a third",
        "other ratio", "factor of a rare column",
        "mostly rare columns", "one uneven column", "round factors", "no factor",
    ],
)  # fmt: skip
def test_healthy_weights_are_quiet(event):
    assert not judge(ClassWeightsInverted, [event] * 4)


def test_few_labels_and_weights_that_change_are_quiet():
    assert not judge(ClassWeightsInverted, [counted((70, 20, 10), (0.7, 0.2, 0.1))] * 2)
    assert not judge(
        ClassWeightsInverted,
        [*[counted((70, 20, 10), (0.7, 0.2, 0.1))] * 4, counted((70, 20, 10), (0.7, 0.3, 0.1))],
    )


def test_weights_of_a_sampler_that_follow_the_counts_are_found():
    (finding,) = judge(ClassWeightsInverted, [LoaderMet(loader=1, counts=(600, 60), site=LOSS)])
    assert finding.primary.label == "600 samples are drawn 100 times as often as 60 others"
    assert judge(ClassWeightsInverted, [LoaderMet(loader=1, site=LOSS)]) == []
