"""Layers that get the same result twice, joined along their features, and results that are joined on purpose."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import InputRepeated, Site
from truestep.probes.forward.layers.joins import is_on_purpose, join_with_itself
from truestep.testing import capture_events

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
Forward = Callable[["Net", Tensor], Tensor]


class Net(nn.Module):
    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 8), nn.Linear(4, 8)
        self.two, self.three, self.flat = nn.Linear(16, 1), nn.Linear(24, 1), nn.Linear(8, 1)
        self.down, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
        self.wide, self.pooled = nn.Linear(8 * 16, 1), nn.Linear(8, 1)
        self.lstm, self.drop = nn.LSTM(16, 3, batch_first=True), nn.Dropout(0.2)
        self.how = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.how(self, x)


def repeats(forward: Forward, x: Tensor = X) -> list[tuple[int, int]]:
    """Train a model for three steps; return the repeated and all inputs of each layer that repeats some."""
    model = Net(forward)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    return [(event.width, event.inputs) for event in events if isinstance(event, InputRepeated)]


def hidden(net: Net, x: Tensor) -> Tensor:
    return torch.relu(net.one(x))


def named(net: Net, x: Tensor) -> Tensor:
    skip = now = hidden(net, x)
    return net.two(torch.cat([now, skip], -1))


def mixed(net: Net, x: Tensor) -> Tensor:
    h, other = hidden(net, x), net.other(x)
    return net.three(torch.cat([h, other, h], 1))


@pytest.mark.parametrize(
    ("forward", "x", "found"),
    [
        (lambda net, x: net.two(torch.cat([h := hidden(net, x), h], dim=1)), X, (8, 16)),
        (named, X, (8, 16)),
        (lambda net, x: net.two(torch.hstack((h := hidden(net, x), h))), X, (8, 16)),
        (lambda net, x: net.two(net.drop(torch.relu(torch.cat([h := net.one(x), h], 1)))), X, (8, 16)),
        (lambda net, x: net.two(torch.stack([h := hidden(net, x), h], 1).flatten(1)), X, (8, 16)),
        (lambda net, x: net.two(torch.cat([h := hidden(net, x[None]), h], -1)), X, (8, 16)),
        (lambda net, x: net.up(torch.cat([d := net.down(x).relu(), d], 1)), IMAGES, (4, 8)),
        (lambda net, x: net.wide(torch.cat([d := F.max_pool2d(net.down(x), 2), d], 1).flatten(1)), IMAGES, (64, 128)),
        (lambda net, x: net.pooled(torch.cat([d := net.down(x), d], 1).mean((2, 3))), IMAGES[:, :, :6, :6], (4, 8)),
    ],
)  # fmt: skip
def test_a_result_that_is_joined_with_itself_is_found(forward: Forward, x: Tensor, found: tuple[int, int]) -> None:
    assert repeats(forward, x) == [found] * 3


def rotated(net: Net, x: Tensor) -> Tensor:
    angles = net.one(x)[:, :4]
    return net.flat(hidden(net, x) * torch.cat((angles, angles), -1).cos())


def pairs(net: Net, x: Tensor) -> Tensor:
    rows = hidden(net, x).unbind(0)
    return torch.stack([net.two(torch.cat([a, b])[None]) for a in rows for b in rows]).mean(0)


@pytest.mark.parametrize(
    ("forward", "x"),
    [
        (lambda net, x: net.two(torch.cat([hidden(net, x), net.other(x)], 1)), X),
        (lambda net, x: net.flat(torch.cat([h := hidden(net, x), h], 0)), X),
        (lambda net, x: net.flat(torch.cat([h := hidden(net, x)[None], h], 1)), X),
        (lambda net, x: net.flat(torch.stack([h := hidden(net, x), h], 1))[:, 0], X),
        (lambda net, x: net.two(torch.cat([h := net.one(x), -h], 1).relu()), X),
        (lambda net, x: net.three(torch.cat([hidden(net, x)] * 3, 1)), X),
        (lambda net, x: net.three(torch.cat([h := hidden(net, x), h, h], 1)), X),
        (lambda net, x: net.two(torch.cat([hidden(net, x)] * 2, 1)), X),
        (lambda net, x: net.two(torch.cat([y := F.pad(x, (0, 4)), y], 1)) + net.flat(hidden(net, x)), X),
        (lambda net, x: net.lstm(torch.cat([h := hidden(net, x), h], 1)[None])[0][0, :, :1], X),
        (lambda net, x: torch.cat([h := hidden(net, x), h], 1) @ torch.ones(16, 1), X),
        (rotated, X),
        (mixed, X),
        (lambda net, x: net.two(torch.cat([h := net.one.bias.expand(6, -1), h], 1)), X),
        (lambda net, x: net.up(torch.cat([d := net.down(x).transpose(0, 1), d], 1).reshape(2, 8, 8, 8)), IMAGES),
        (pairs, X),
        (lambda net, x: net.two(torch.cat([h := hidden(net, x), h], 1))
         + net.two(torch.cat([hidden(net, x), net.other(x)], 1)), X),
        (lambda net, x: net.up(torch.cat([d := net.down(x), d], 0).repeat(1, 2, 1, 1)), IMAGES),
    ],
)  # fmt: skip
def test_a_result_that_is_joined_on_purpose_is_not(forward: Forward, x: Tensor) -> None:
    assert repeats(forward, x) == []


def test_a_frozen_layer_behind_the_join_is_not() -> None:
    def forward(net: Net, x: Tensor) -> Tensor:
        net.two.requires_grad_(False)
        h = hidden(net, x)
        return net.two(torch.cat([h, h], 1))

    assert repeats(forward) == []


def test_a_pass_without_the_join_is_told_as_well() -> None:
    count = iter(range(3))

    def forward(net: Net, x: Tensor) -> Tensor:
        h = hidden(net, x)
        return net.two(torch.cat([h, net.other(x) if next(count) == 2 else h], 1))

    assert repeats(forward) == [(8, 16), (8, 16), (0, 16)]


def site(tmp_path: Path, text: str, line: int) -> tuple[Any, ...]:
    path = tmp_path / f"train_{len(text)}.py"
    path.write_text(text, encoding="utf-8")
    return (Site(str(path), line, 4),)


def test_the_place_is_the_only_join_of_equal_expressions(tmp_path: Path) -> None:
    one = site(tmp_path, "def f(net, x, y):\n    a = cat([x, y])\n    z = torch.cat((x, x), 1)\n    return net(z)\n", 4)
    found = join_with_itself(one)
    assert found is not None
    assert (found.line, found.column) == (3, 8)
    twice = site(tmp_path, "def g(net, x):\n    z = cat((x, x))\n    w = cat((x, x))\n    return net(w)\n", 4)
    assert join_with_itself(twice) is None


@pytest.mark.parametrize(
    ("join", "found"),
    [
        ("[x] * 2", True),
        ("2 * (x,)", True),
        ("[x for _ in range(2)]", True),
        ("[x, x]", False),
        ("[x for x in xs]", False),
        ("[f(x) for _ in xs]", False),
    ],
)
def test_a_number_of_copies_is_on_purpose(tmp_path: Path, join: str, found: bool) -> None:
    assert is_on_purpose(site(tmp_path, f"def f(net, x, xs):\n    return net(torch.cat({join}, 1))\n", 2)) is found
