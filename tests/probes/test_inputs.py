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


@pytest.mark.parametrize("measured", [True, False])
def test_an_evaluation_with_gradients_is_read_if_its_results_are_only_measured(measured):
    model, x = nn.Linear(4, 2), torch.ones(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hits = 0
    with capture_events() as events:
        for _ in range(6):
            model(x).sum().backward()
            optimizer.step()
        model.eval()
        for _ in range(5):
            if measured:
                hits += (model(x + 3).argmax(1) == x[:, 0]).sum()
            else:
                model(x + 3).sum().backward()
    found = [event for event in events if isinstance(event, ev.InputsRead) and not event.training]
    assert [event.mean for event in found] == [4.0] * 3 * measured


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


class Beside(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 4), nn.Linear(4, 1)

    def forward(self, words, numbers, state):
        return self.head(self.embed(words) + numbers + state)


class Recurrent(Beside):
    def forward(self, words, state, numbers):
        return super().forward(words, numbers, state)


@pytest.mark.parametrize(("kind", "names"), [(Beside, ["", "numbers"]), (Recurrent, [""])])
def test_numbers_beside_whole_numbers_are_read_but_no_state(kind, names):
    model, numbers, state = kind(), torch.full((8, 4), 3.0), torch.full((8, 4), 7.0)
    given = (numbers, state) if kind is Beside else (state, numbers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        model(torch.arange(8) % 5, *given).sum().backward()
        optimizer.step()
    found = [event for event in events if isinstance(event, ev.InputsRead)]
    assert [event.argument for event in found] == names
    assert [event.mean for event in found if event.argument] == [3.0] * (len(names) - 1)
