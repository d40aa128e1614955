"""Values that models are called on are read at sampled steps, and in the first calls of an evaluation."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from truestep import events as ev
from truestep.testing import capture_events


def run(steps, *, evaluate_after=None, convert=lambda x: x):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.full((8, 4), 2.0)
    x[0] = 0.0
    with capture_events() as events:
        for step in range(steps):
            model.train()
            optimizer.zero_grad()
            model(convert(x)).square().mean().backward()
            optimizer.step()
            if step == evaluate_after:
                model.eval()
                with torch.no_grad():
                    for _ in range(5):
                        model(x + 3)
    return [event for event in events if isinstance(event, ev.InputsRead)]


def test_training_is_read_at_sampled_steps():
    found = run(15)
    assert len(found) == 5
    first = found[0]
    assert (first.training, first.mean, first.least, first.most, first.shape) == (True, 1.75, 0.0, 2.0, (8, 4))
    assert first.spread == pytest.approx(0.661)
    assert all(event is first for event in found)


def test_an_evaluation_between_sampled_steps_is_read_in_its_first_calls():
    found = [event for event in run(15, evaluate_after=7) if not event.training]
    assert [event.mean for event in found] == [4.75] * 3


def test_a_call_on_something_else_is_not_read():
    class Pair(tuple):
        __slots__ = ()

    model = nn.Module()
    model.forward = lambda pair: pair[0]
    model.weight = nn.Parameter(torch.ones(1))
    with capture_events() as events:
        model(Pair((torch.ones(2), 1)))
        model(torch.ones(3, dtype=torch.complex64).conj())
    assert not any(isinstance(event, ev.InputsRead) for event in events)
