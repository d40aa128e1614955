"""Weights with equal rows: followed from the first step until a row differs."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from truestep.events import Event, ParameterMet, RowsEqual
from truestep.testing import capture_events

X, Y = torch.randn(32, 6, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 3


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 11) -> list[Event]:
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X), Y).backward()
            optimizer.step()
    return events


def told(events: list[Event]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    names = {event.parameter: event.name for event in events if isinstance(event, ParameterMet)}
    found = [event for event in events if isinstance(event, RowsEqual)]
    return [(tuple(names[p] for p in e.moved), tuple(names[p] for p in e.zero)) for e in found]


def filled(*layers: int, value: float) -> nn.Sequential:
    model = network()
    for number in layers:
        nn.init.constant_(model[number].weight, value)  # type: ignore[arg-type]
        nn.init.zeros_(model[number].bias)  # type: ignore[arg-type]
    return model


@pytest.mark.parametrize("build", [torch.optim.SGD, torch.optim.AdamW])
def test_rows_of_constant_layers_stay_equal(build: Callable[..., torch.optim.Optimizer]) -> None:
    model = filled(0, 2, value=0.1)
    events = told(train(model, build(model.parameters(), lr=0.01)))
    assert events[-1] == (("model.0.weight",), ())


def test_constants_are_read_before_the_first_step() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.01)
    events = train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    constant = {event.constant for event in events if isinstance(event, RowsEqual)}
    names = {event.parameter: event.name for event in events if isinstance(event, ParameterMet)}
    assert [[names[number] for number in numbers] for numbers in constant] == [["model.0.weight", "model.2.weight"]]


def test_zeros_that_get_no_gradient_are_distinguished() -> None:
    model = filled(0, 2, value=0.0)
    events = told(train(model, torch.optim.Adam(model.parameters())))
    assert events[-1] == ((), ("model.0.weight", "model.2.weight"))


@pytest.mark.parametrize(("layer", "value"), [(0, 0.1), (2, 0.1), (2, 0.0), (0, 0.0)])
def test_one_constant_layer_parts_at_once(layer: int, value: float) -> None:
    model = filled(layer, value=value)
    events = told(train(model, torch.optim.Adam(model.parameters(), lr=0.01)))
    assert all(event == ((), ()) for event in events)


def test_random_layers_are_not_emitted() -> None:
    model = network()
    assert told(train(model, torch.optim.Adam(model.parameters()))) == []


def test_weights_that_only_decay_are_not_emitted_as_trained() -> None:
    model = network()
    beside = nn.Linear(6, 5)
    nn.init.constant_(beside.weight, 0.5)
    beside.weight.grad = torch.zeros_like(beside.weight)
    optimizer = torch.optim.SGD([*model.parameters(), *beside.parameters()], lr=0.1, weight_decay=0.1)
    with capture_events() as events:
        for _ in range(11):
            for parameter in model.parameters():
                parameter.grad = None
            nn.functional.cross_entropy(model(X), Y).backward()
            optimizer.step()
    assert told(events)
    assert all(event == ((), ()) for event in told(events))
    assert float(beside.weight.detach()[0, 0]) < 0.5
