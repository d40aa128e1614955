"""The window: the divisor of losses, and the correction at its end."""

import pytest
import torch

from truestep.loop.optim.window import Window


def test_a_full_window_needs_no_correction():
    window = Window(4)
    assert [window.divisor(None) for _ in range(4)] == [4, 4, 4, 4]
    assert window.is_full
    assert window.correction() is None


def test_a_partial_window_is_divided_by_what_it_holds():
    window = Window(4)
    window.divisor(None)
    window.divisor(None)
    window.divisor(None)
    assert not window.is_full
    assert window.correction() == 4 / 3


def test_weights_are_divided_by_the_first_times_accumulate():
    window = Window(2)
    assert [window.divisor(10), window.divisor(30)] == [20, 20]
    assert window.correction() == 20 / 40


def test_each_window_is_divided_by_its_own_first_weight():
    window = Window()
    for weight in (7, 3):
        assert window.divisor(weight) == weight
        assert window.correction() is None
        window.close()


def test_even_weights_need_no_correction():
    window = Window(2)
    assert [window.divisor(8), window.divisor(8)] == [16, 16]
    assert window.correction() is None


def test_a_first_weight_of_zero_is_no_division_by_zero():
    window = Window(2)
    assert [window.divisor(0), window.divisor(6)] == [2, 2]
    assert window.correction() == 2 / 6


def test_a_window_without_weight_leaves_gradients_of_zero():
    window = Window(2)
    window.divisor(0)
    window.divisor(0)
    assert window.correction() == 2.0


def test_weights_that_are_tensors_are_numbers_on_the_cpu():
    window = Window(1)
    assert window.divisor(torch.tensor(7)) == 7.0
    assert window.correction() is None


def test_weights_on_a_device_are_not_read():
    window = Window(2)
    first = window.divisor(torch.tensor(7, device="meta"))
    window.divisor(torch.tensor(3, device="meta"))
    assert first.device.type == "meta"
    assert window.correction().device.type == "meta"


def test_means_and_sums_do_not_mix():
    window = Window(2)
    window.divisor(None)
    with pytest.raises(ValueError, match="has no mean"):
        window.divisor(3)


def test_it_begins_again():
    window = Window(2)
    window.divisor(5)
    window.close()
    assert not window.is_open
    assert window.divisor(None) == 2
