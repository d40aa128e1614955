"""A mean over samples, for batches of all sizes."""

import pickle

import numpy as np
import pytest
import torch

from truestep import Mean
from truestep.errors import BadLogValue, NothingMeasured


def test_ragged_batches_count_by_their_samples():
    values = torch.randn(1003, generator=torch.Generator().manual_seed(0))
    mean, wrong = Mean(), []
    for batch in values.split(64):
        mean.update(batch.mean(), len(batch))
        wrong.append(batch.mean().item())
    right = values.double().mean().item()
    assert float(mean) == pytest.approx(right, rel=1e-6)
    assert abs(np.mean(wrong) - right) > 100 * abs(float(mean) - right)


def test_values_of_samples_count_one_each():
    mean = Mean()
    mean.update(torch.tensor([[True, False], [True, True]]))
    mean.update(torch.tensor([0, 0]))
    assert float(mean) == 0.5


def test_weights_of_elements_are_a_mask():
    losses, mask = torch.tensor([[1.0, 2.0, 9.0], [3.0, 9.0, 9.0]]), torch.tensor([[1, 1, 0], [1, 0, 0]])
    mean = Mean()
    mean.update(losses, mask)
    assert float(mean) == 2.0
    mean.update(torch.tensor([6.0]), torch.tensor(1.0))
    assert float(mean) == 3.0


def test_numbers_of_python_and_tensors_add_up():
    mean = Mean()
    mean.update(1, 2)
    mean.update(torch.tensor(2.5), 1)
    mean.update(4.0, torch.tensor(1.0))
    assert float(mean) == pytest.approx((2 + 2.5 + 4) / 4)


def test_sums_of_many_small_values_stay_exact():
    mean, value = Mean(), torch.tensor(0.1)
    for _ in range(20_000):
        mean.update(value, 100)
    assert float(mean) == pytest.approx(value.item(), rel=1e-12)


def test_graphs_and_values_are_not_kept():
    mean, leaf = Mean(), torch.ones(3, requires_grad=True)
    value = (leaf * 2).sum()
    mean.update(value, 1)
    with torch.no_grad():
        leaf.zero_()
        value.zero_()
    assert float(mean) == 6.0
    assert not mean.compute().requires_grad


def test_updates_in_inference_mode_leave_an_ordinary_mean():
    with torch.inference_mode():
        mean = Mean()
        mean.update(torch.tensor(1.0), 1)
    mean.update(torch.tensor(2.0), 1)
    mean.reset()
    mean.update(torch.tensor(2.0), 1)
    assert float(mean) == 2.0


def test_a_single_value_needs_its_weight():
    for value in (torch.tensor(1.0), 1.0):
        with pytest.raises(BadLogValue, match="weight"):
            Mean().update(value)


def test_the_mean_of_nothing_is_refused():
    mean = Mean()
    with pytest.raises(NothingMeasured, match=r"Mean\.compute\(\) was called before any update\(\)"):
        float(mean)
    mean.update(1.0, 1)
    mean.reset()
    with pytest.raises(NothingMeasured):
        mean.compute()
    assert repr(mean) == "Mean()"


def test_weights_that_are_all_zero_give_nan():
    mean = Mean()
    mean.update(torch.tensor([1.0]), torch.tensor([0.0]))
    assert np.isnan(float(mean))


def test_a_nan_is_not_hidden():
    mean = Mean()
    mean.update(torch.tensor([1.0, float("nan")]))
    assert np.isnan(float(mean))


def test_it_is_written_like_a_number():
    mean = Mean()
    mean.update(torch.tensor([1.0, 2.0]))
    assert (f"{mean:.2f}", repr(mean)) == ("1.50", "Mean(1.5)")


def test_the_state_goes_on_where_it_was():
    one, other = Mean(), Mean()
    one.update(torch.tensor([1.0, 2.0]))
    one.update(7.0, 1)
    other.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    for mean in (one, other):
        mean.update(torch.tensor(3.0), 2)
    assert one.compute().equal(other.compute())
