"""Batch sizes multiply, and an lr follows the rule that is named."""

import math

import pytest

from truestep import effective_batch_size, scaled_lr
from truestep.errors import BadSettings


def test_the_linear_rule_is_that_of_goyal():
    assert scaled_lr(0.1, base_batch_size=256, batch_size=32, world_size=256) == pytest.approx(3.2)  # their 8k


def test_the_square_root_rule_keeps_the_variance():
    assert scaled_lr(0.1, base_batch_size=128, batch_size=64, accumulate=16, rule="sqrt") == 0.1 * math.sqrt(8)


def test_the_same_batch_has_the_same_lr():
    for rule in ("linear", "sqrt"):
        assert scaled_lr(3e-4, base_batch_size=8, batch_size=2, accumulate=4, rule=rule) == 3e-4


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: effective_batch_size(0), "batch_size must be an integer of at least 1, got 0"),
        (lambda: effective_batch_size(2, accumulate=1.5), r"accumulate must be .* got 1\.5"),
        (lambda: effective_batch_size(2, world_size=True), "world_size must be .* got True"),
        (lambda: scaled_lr(0.1, base_batch_size=None, batch_size=2), "base_batch_size must be .* got None"),
        (lambda: scaled_lr(0, base_batch_size=1, batch_size=2), "lr must be .* got 0"),
        (lambda: scaled_lr(0.1, base_batch_size=1, batch_size=2, rule="cubic"), "rule must be .* got 'cubic'"),
    ],
)
def test_what_means_nothing_is_refused(call, match):
    with pytest.raises(BadSettings, match=match):
        call()
