"""Weights of samplers, next to the labels of a data set."""

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

from truestep.events import LoaderMet
from truestep.testing import capture_events

Y = torch.cat([torch.zeros(200), torch.ones(40)]).long()
COUNTS = torch.bincount(Y).double()


def met(sampler) -> LoaderMet:
    with capture_events() as events:
        next(iter(DataLoader(TensorDataset(torch.randn(240, 3), Y), batch_size=16, sampler=sampler)))
    (event,) = [event for event in events if isinstance(event, LoaderMet)]
    return event


@pytest.mark.parametrize(
    ("weights", "expected"),
    [(COUNTS[Y] / 240, (200, 40)), ((1 / COUNTS)[Y], (0, 0)), (COUNTS.sqrt()[Y], (0, 0)), (torch.rand(240), (0, 0))],
    ids=["counts", "inverse", "roots", "of each sample"],
)
def test_weights_that_follow_the_counts_are_read(weights, expected) -> None:
    event = met(WeightedRandomSampler(weights, 240))
    assert (event.weights, event.counts) == ((240, 240), expected)


def test_the_number_of_weights_is_read() -> None:
    assert met(WeightedRandomSampler(1 / COUNTS, 240)).weights == (2, 240)
    assert met(RandomSampler(Y)).weights == (0, 0)
