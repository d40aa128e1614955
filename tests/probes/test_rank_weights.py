"""Values of parameters that ranks compare, read in one process that takes itself for the first of two ranks."""

import pytest
import torch

from truestep.events import WeightsRead
from truestep.seams import ranks
from truestep.testing import capture_events


@pytest.fixture(autouse=True)
def two_ranks(monkeypatch):
    monkeypatch.setattr(ranks, "group", lambda: (0, 2))


def test_some_values_of_trainable_parameters_with_values_are_read():
    bias, empty, frozen, large = torch.ones(2), torch.ones(0), torch.ones(4), torch.arange(64.0)
    given = [part.requires_grad_(part is not frozen) for part in (bias, empty, frozen, large)]
    optimizer = torch.optim.SGD(given, lr=0.5)
    with capture_events() as events:
        (bias.sum() + empty.sum() + 0 * large.sum()).backward()
        optimizer.step()
    (read,) = (event for event in events if isinstance(event, WeightsRead))
    assert read.values == ((0.5, 0.5), tuple(float(4 * place) for place in range(16)))
    assert len(read.parameters) == 2
    assert not read.sharded


def test_no_more_than_a_number_of_parameters_are_read():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True) for _ in range(60)], lr=0.5)
    with capture_events() as events:
        torch.stack([part.sum() for part in optimizer.param_groups[0]["params"]]).sum().backward()
        optimizer.step()
    (read,) = (event for event in events if isinstance(event, WeightsRead))
    assert len(read.parameters) == len(read.values) == 20
