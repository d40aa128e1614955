"""Linear layers after one another on the tape, with and without a nonlinear operation between them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import LayersJoined, ParameterMet
from truestep.testing import capture_events

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
Forward = Callable[["Net", Tensor], Tensor]


class Net(nn.Module):
    def __init__(self, forward: Forward, width: int = 16) -> None:
        super().__init__()
        self.one, self.two, self.three = nn.Linear(4, width), nn.Linear(width, 3), nn.Linear(4, width)
        self.packed, self.many = nn.Linear(width, 6), nn.Linear(width, width)
        self.norm, self.drop, self.none = nn.BatchNorm1d(width), nn.Dropout(0.1), nn.Dropout(0.0)
        self.lstm = nn.LSTM(width, 3)
        self.how = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.how(self, x)


def joined(model: nn.Module, x: Tensor = X) -> list[tuple[str, str]]:
    """Train a model; return the names of the layers that were found to be one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    names = {event.parameter: event.name for event in events if isinstance(event, ParameterMet)}
    pairs = [(names[event.first], names[event.second]) for event in events if isinstance(event, LayersJoined)]
    assert len(set(pairs)) <= 1 or len(pairs) > 2
    return sorted(set(pairs))


ONE = [("model.one.weight", "model.two.weight")]


@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: net.two(net.one(x)),
        lambda net, x: net.two(net.drop(net.one(x))),
        lambda net, x: net.two(net.none(net.one(x))),
        lambda net, x: net.two(net.norm(net.one(x))),
        lambda net, x: net.two(net.one(x).reshape(4, 2, -1)).flatten(0, 1),
        lambda net, x: net.two(net.one(x))[:, 0],
        lambda net, x: F.linear(F.linear(x, net.one.weight), net.two.weight, net.two.bias),
    ],
    ids=["plain", "dropout", "dropout of 0", "norm", "reshaped", "one column", "functions"],
)
def test_layers_without_an_activation_are_joined(forward: Forward) -> None:
    assert joined(Net(forward)) == ONE


@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: net.two(torch.relu(net.one(x))),
        lambda net, x: net.two(net.drop(torch.tanh(net.one(x)))),
        lambda net, x: net.two(net.none(torch.tanh(net.one(x)))),
        lambda net, x: net.two(net.one(x) * (net.one(x) > 0)),
        lambda net, x: net.two(net.one(x) + net.three(x)),
        lambda net, x: net.two(hidden := net.one(x)) + hidden[:, :3],
        lambda net, x: torch.mul(*net.packed(net.one(x)).chunk(2, 1)),
        lambda net, x: net.lstm(net.one(x)[None])[0][0],
        lambda net, x: net.two(net.one(x).detach()),
    ],
    ids=["relu", "tanh", "tanh, dropout of 0", "by hand", "sum", "residual", "gate", "lstm", "detached"],
)
def test_other_layers_are_not(forward: Forward) -> None:
    assert joined(Net(forward)) == []


def test_a_bottleneck_is_not() -> None:
    assert joined(Net(lambda net, x: net.two(net.one(x)), width=2)) == []


@pytest.mark.program
def test_a_frozen_layer_is_not() -> None:
    net = Net(lambda net, x: net.two(net.one(x)))
    net.one.requires_grad_(False)
    assert joined(net) == []


def test_parts_of_a_model_are_two() -> None:
    halves = nn.Sequential(nn.Sequential(nn.Linear(4, 8)), nn.Sequential(nn.Linear(8, 8)))
    assert joined(halves) == []
    assert joined(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8))) == [("model.0.weight", "model.1.weight")]


@pytest.mark.parametrize(("groups", "kernel", "found"), [(1, 3, 1), (2, 3, 0), (1, (1, 3), 0)])
def test_convolutions_with_groups_or_different_sides_are_two(groups: int, kernel: object, found: int) -> None:
    first = nn.Conv2d(2, 4, kernel, groups=groups)  # type: ignore[arg-type]
    second = nn.Conv2d(4, 4, kernel)  # type: ignore[arg-type]
    assert len(joined(nn.Sequential(first, second), torch.randn(2, 2, 7, 7))) == found


def test_the_result_of_a_dropout_without_a_graph_is_not_marked() -> None:
    assert joined(Net(lambda net, x: net.two(torch.relu(net.one(F.dropout(x, 0.5)))))) == []
