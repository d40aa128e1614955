"""``train()`` and ``eval()``: the user's own call, not those that go down to the children."""

import torch
from torch import nn

from truestep.events import Event, ModeSet
from truestep.testing import capture_events


def modes(events: list[Event]) -> list[tuple[int | None, bool]]:
    return [(event.model, event.training) for event in events if isinstance(event, ModeSet)]


def test_one_event_per_call_of_the_user() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)))
    with capture_events() as events:
        model(torch.ones(2, 2))
        model.eval()
        model.train()
        model.train(False)
        model[1].train()
        model.training = True
    assert modes(events) == [(1, False), (1, True), (1, False), (None, True)]


def test_an_override_that_freezes_a_layer_works() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def train(self, mode: bool = True) -> "Frozen":
            super().train(mode)
            self.norm.eval()
            return self

    model = Frozen()
    with capture_events() as events:
        assert model.train() is model
        assert not model.norm.training
    assert (None, True) in modes(events)
