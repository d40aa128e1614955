"""Gradients that arrive at results: columns and samples without one, read by hooks that change nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import ResultDifferentiated
from truestep.testing import capture_events


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        out = self.head(x)
        return {"out": out, "aux": out.sigmoid()}


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, 2), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.one(x), self.two(x)], dim=1)


def seen(net: nn.Module, loss: Callable[[Any], Tensor], shape: tuple[int, ...] = (12, 3)) -> list[ResultDifferentiated]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            loss(net(torch.randn(shape))).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, ResultDifferentiated)]


def test_columns_without_a_gradient_are_ranges_and_their_weights_are_known() -> None:
    events = seen(nn.Linear(3, 4), lambda out: out[:, 1].square().mean())
    assert [(event.dead, event.own, event.columns) for event in events] == [(((0, 1), (2, 4)), True, 4)] * 3


def test_a_pass_in_a_later_step_than_the_call_is_not_read() -> None:
    net = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with capture_events() as events:
        loss = net(torch.randn(12, 3))[:, 1].square().mean()
        for _ in range(3):
            torch.autograd.backward(loss, retain_graph=True)
            optimizer.zero_grad()
            optimizer.step()
    assert [type(event) for event in events].count(ResultDifferentiated) == 1


def beside_targets(columns: int) -> list[ResultDifferentiated]:
    target = torch.randn(12, columns)
    return seen(nn.Linear(3, 4), lambda out: (out[:, 0] - target[:, 0]).square().mean())


def test_a_variable_with_a_value_for_each_column_is_seen_unless_the_model_gets_it() -> None:
    assert {event.asked for event in beside_targets(4)} == {True}
    assert {event.asked for event in beside_targets(3)} == {False}
    assert {event.asked for event in seen(nn.Linear(3, 4), lambda out: out[:, 1].square().mean())} == {False}


def test_heads_that_a_model_joins_are_weights_of_their_columns() -> None:
    events = seen(Joined(), lambda out: out[:, :2].square().mean())
    assert [(event.dead, event.own) for event in events] == [(((2, 5),), True)] * 3


def test_positions_that_one_layer_makes_are_columns() -> None:
    steps = nn.Sequential(nn.Linear(3, 8), nn.Unflatten(1, (4, 2)))
    events = seen(steps, lambda out: out[:, 0].square().mean())
    assert [(event.dead, event.own, event.columns) for event in events] == [(((2, 8),), True, 8)] * 3
    shared = seen(nn.Linear(3, 2), lambda out: out[:, -1].square().mean(), (12, 4, 3))
    assert [(event.dead, event.own, event.columns) for event in shared] == [((), False, 2)]


def test_parts_of_a_dict_have_names() -> None:
    events = seen(Named(), lambda out: out["out"][:, :1].square().mean())
    assert {event.part for event in events} == {"out"}


def test_channels_of_images() -> None:
    events = seen(nn.Conv2d(1, 6, 1), lambda out: out[:, 4:].square().mean(), (8, 1, 4, 4))
    assert {(event.dead, event.own) for event in events} == {(((0, 4),), True)}


@pytest.mark.parametrize(
    ("net", "loss", "shape"),
    [
        (nn.Linear(3, 4), lambda out: out.square().mean(), (12, 3)),
        (nn.Linear(3, 4), lambda out: out.gather(1, torch.randint(4, (12, 1))).square().mean(), (12, 3)),
        (nn.Linear(3, 4), lambda out: out[:, -1].square().mean(), (12, 5, 3)),
    ],
    ids=["all columns", "gathered", "positions"],
)
def test_a_gradient_everywhere_is_emitted_once(
    net: nn.Module, loss: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    (event,) = seen(net, loss, shape)
    assert (event.dead, event.unused) == ((), ())


def test_softmax_before_the_part_has_shared_weights() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Softmax(dim=1))
    assert {event.own for event in seen(net, lambda out: out[:, 0].log().neg().mean())} == {False}


def test_samples_count_only_in_whole_batches_of_a_loader() -> None:
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(48, 3), torch.randn(48))
    with capture_events() as events:
        for x, _ in DataLoader(data, batch_size=16):
            optimizer.zero_grad()
            net(x)[:8].square().mean().backward()
            optimizer.step()
    found = [event for event in events if isinstance(event, ResultDifferentiated)]
    assert [event.unused for event in found] == [((8, 16),)] * 3
    (event,) = seen(net, lambda out: out[:8].square().mean(), (16, 3))
    assert event.unused == ()


def test_hooks_change_no_gradient_and_keep_no_result() -> None:
    torch.manual_seed(0)
    net, x = nn.Linear(3, 4), torch.randn(12, 3)
    net(x)[:, 0].square().mean().backward()
    before = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    with capture_events():
        out = net(x)
        (grad,) = torch.autograd.grad(out[:, 0].square().mean(), out, retain_graph=True)
        out[:, 0].square().mean().backward(retain_graph=True)
        kept = weakref.ref(out)
        del out
        gc.collect()
        assert kept() is None
    assert grad[:, 1:].eq(0).all()
    assert all(torch.equal(p.grad, one) for p, one in zip(net.parameters(), before, strict=True) if p.grad is not None)


def test_double_backward_goes_through_hooks() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    with capture_events() as events:
        x = torch.randn(9, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        (slope.norm(dim=1) - 1).square().mean().backward()
    assert not [event for event in events if isinstance(event, ResultDifferentiated) and event.dead]
