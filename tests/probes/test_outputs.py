"""Rows of outputs, compared at sampled steps where the samples differ; layers where the outputs were equal before."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from truestep.events import Event, OutputsCompared
from truestep.testing import capture_events

X = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, :1].sign() + 0.1


def network(*hidden: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), *hidden, nn.Linear(8, 1))


def dead() -> nn.Sequential:
    model = network(nn.ReLU())
    with torch.no_grad():
        model[0].bias.fill_(-50.0)
    return model


def looks(model: nn.Module, x: torch.Tensor = X, steps: int = 11) -> list[OutputsCompared]:
    """Train a model for some steps; return the events about its outputs."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            (model(x) - Y[: len(x)]).pow(2).mean().backward()
            optimizer.step()
    return compared(events)


def compared(events: list[Event]) -> list[OutputsCompared]:
    return [event for event in events if isinstance(event, OutputsCompared)]


def test_outputs_that_differ_are_one_event() -> None:
    told = looks(network(nn.ReLU()))
    assert len(told) == 5
    assert {id(event) for event in told} == {id(told[0])}
    assert (told[0].equal, told[0].samples, told[0].kind) == (False, 16, "")


def test_a_dead_layer_is_named_from_the_second_look() -> None:
    first, *others = looks(dead())
    assert (first.equal, first.moved, first.kind) == (True, False, "")
    for event in others:
        assert (event.equal, event.moved, event.layer, event.kind, event.zero) == (True, True, "1", "ReLU", True)
    assert [event.steps for event in others] == [1, 2, 3, 10]


@pytest.mark.parametrize("inplace", [True, False])
def test_a_layer_that_writes_in_place_is_compared_with_what_it_got(inplace: bool) -> None:
    model = dead()
    model[1] = nn.ReLU(inplace=inplace)
    assert looks(model)[-1].kind == "ReLU"


class Written(nn.Module):
    """Activations as functions, a wide row of zeros or a mean over the samples between two layers."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.between = nn.Linear(6, 8), nn.Linear(8, 1), between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(self.first(x)))


@pytest.mark.parametrize(
    ("between", "kind"),
    [
        (lambda h: (h - 50).relu(), "Linear"),
        (lambda h: (h + 50).tanh(), "Linear"),
        (lambda h: h.mean(0, keepdim=True).repeat(16, 1), ""),
        (lambda h: h.new_full((16, 8), 0.3), ""),
    ],
    ids=["zeros", "ones", "a mean over samples", "a constant"],
)
def test_between_layers_only_plain_numbers_count(between: Callable[[torch.Tensor], torch.Tensor], kind: str) -> None:
    last = looks(Written(between))[-1]
    assert (last.equal, last.kind) == (True, kind)


class Bounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.scale = network(nn.ReLU()).append(nn.Tanh()), nn.Parameter(torch.ones(1))
        nn.init.constant_(self.body[2].bias, 50.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * self.body(x)


def test_a_saturated_last_activation_is_no_evidence() -> None:
    last = looks(Bounded())[-1]
    assert (last.equal, last.moved, last.kind) == (True, True, "")


@pytest.mark.program
def test_outputs_that_do_not_move_are_emitted() -> None:
    model = dead()
    model[2].requires_grad_(False)
    assert not any(event.moved for event in looks(model))


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: network(nn.ReLU()), X[:3]),
        (lambda: network(nn.ReLU()), X[:1].repeat(16, 1)),
        (lambda: nn.Linear(6, 1), X),
        (lambda: network(nn.ReLU()).eval(), X),
        (lambda: Written(lambda h: h.sum(0)), X),
        (lambda: network(nn.ReLU()).double(), X.to("meta")),
    ],
    ids=["three samples", "equal samples", "a single weight", "eval mode", "one row", "no values"],
)
def test_what_says_nothing_is_not_compared(make: Callable[[], nn.Module], x: torch.Tensor) -> None:
    model = make()
    if x.is_meta:
        model = model.to("meta")
    with capture_events() as events:
        model(x.to(next(model.parameters()).dtype))
    assert compared(events) == []


def test_a_model_that_raises_half_way_leaves_nothing_behind() -> None:
    model = dead()
    with capture_events() as events:
        model(X)
        with pytest.raises(RuntimeError):
            model(X[:, :2])
        network(nn.Tanh())(X)
    assert [event.equal for event in compared(events)] == [True, False]


class Several(nn.Module):
    def __init__(self, model: nn.Module, second: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.model, self.second = model, second

    def forward(self, x: torch.Tensor) -> object:
        result = self.model(x)
        return result, self.second(result)


@pytest.mark.parametrize(
    ("second", "equal"),
    [
        (lambda result: 2 * result, [True, True]),
        (lambda result: result + X * result.mean(), [False, False]),
        (lambda result: result.detach(), []),
        (lambda result: result[:5], []),
        (lambda result: "a name", []),
    ],
)
def test_several_results_are_compared_together(second: Callable[[torch.Tensor], object], equal: list[bool]) -> None:
    model = Several(dead(), second)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with capture_events() as events:
        for _ in range(2):
            optimizer.zero_grad()
            model(X)[0].pow(2).mean().backward()
            optimizer.step()
    assert [event.equal for event in compared(events)] == equal
