"""Derivatives by ``autograd.grad`` without a graph that are added to tensors with one, in the loss that follows."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.autograd import grad

from truestep import events as ev
from truestep.testing import capture_events

MODEL = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
ACTOR = nn.Linear(1, 1)
OPTIMIZER = torch.optim.SGD([*MODEL.parameters(), *ACTOR.parameters()], lr=0.01)
T = torch.linspace(0, 1, 8).unsqueeze(1)


def reads(loss):
    with capture_events() as events:
        for _ in range(3):
            OPTIMIZER.zero_grad()
            value = loss()
            value.backward()
            OPTIMIZER.step()
    return [event for event in events if isinstance(event, ev.TermsRead)]


def derivative(y, t, graph=False):
    return torch.autograd.grad(y.sum(), t, create_graph=graph, retain_graph=True)[0]


def first():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    slope = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True)[0]
    return (slope + 2 * u - torch.cos(t)).square().mean()


def second():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    speed = derivative(u, t, graph=True)
    (bend,) = grad(speed.sum(), t, retain_graph=True)
    return (0.5 * bend + speed).square().mean()


def by_function():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    slope = derivative(u, t)
    return (slope - u).square().mean()


def watched_and_added():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    residual = grad(u.sum(), t, retain_graph=True)[0] + u
    size = residual.square().mean()
    print(round(size.item(), 3))
    return (u - T).square().mean() + size


@pytest.mark.parametrize("loss", [first, second, by_function, watched_and_added])
def test_a_derivative_without_a_graph_in_a_sum_is_emitted(loss):
    found = reads(loss)
    assert {event.cut for event in found} == {"torch.autograd.grad"}
    assert all(event.place is not None and event.place.path == __file__ for event in found)


def test_a_term_of_such_a_derivative_is_emitted():
    with capture_events() as events:
        for _ in range(3):
            t = T.clone().requires_grad_()
            u = MODEL(t)
            slope = grad(u.sum(), t, retain_graph=True)[0]
            extra = nn.functional.mse_loss(slope, torch.ones_like(slope))
            loss = u.square().mean() + 10 * extra
            loss.backward()
    assert {event.cut for event in events if isinstance(event, ev.TermsRead)} == {"torch.autograd.grad"}


def with_a_graph():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    return (derivative(u, t, graph=True) + u).square().mean()


def detached():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    slope = grad(u.sum(), t, retain_graph=True)[0]
    aim = (slope + u).detach()
    return (u - aim).square().mean()


def added_to_an_input():
    t = T.clone().requires_grad_()
    loss = MODEL(t).square().mean()
    slope = grad(loss, t, retain_graph=True)[0]
    return loss + MODEL(t + 0.1 * slope).square().mean()


def by_a_tensor_of_the_weights():
    hidden = MODEL[0](T)
    loss = MODEL[2](hidden).square().mean()
    slope = grad(loss, hidden, retain_graph=True)[0]
    return loss + MODEL[2](hidden + 0.1 * slope).square().mean()


def factor_of_another_network():
    action = ACTOR(T)
    leaf = action.detach().requires_grad_()
    value = MODEL(leaf)
    slope = grad(value.sum(), leaf, retain_graph=True)[0]
    return (value - slope * action).mean()


def added_to_another_network():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    slope = grad(u.sum(), t, retain_graph=True)[0]
    return u.square().mean() + (ACTOR(T) + slope).square().mean()


def only_measured():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    slope = grad(u.sum(), t)[0]
    (slope + u).square().mean().item()
    return MODEL(T).square().mean()


def watched_beside_the_loss_of_its_output():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    residual = grad(u.sum(), t, retain_graph=True)[0] + u
    size = residual.abs().mean()
    print(round(size.item(), 3), residual.square().mean().item())
    return (u - T).square().mean()


def weights_of_samples():
    t = T.clone().requires_grad_()
    u = MODEL(t)
    violation = (grad(u.sum(), t, retain_graph=True)[0] + u).abs()
    return (violation.detach() * (u - T).square()).mean()


@pytest.mark.parametrize(
    "loss",
    [
        watched_beside_the_loss_of_its_output,
        weights_of_samples,
        with_a_graph,
        detached,
        added_to_an_input,
        by_a_tensor_of_the_weights,
        factor_of_another_network,
        added_to_another_network,
        only_measured,
    ],
)
def test_derivatives_that_are_meant_to_be_constant_are_not_emitted(loss):
    assert reads(loss) == []


def test_a_derivative_with_a_graph_in_turn_is_taken_back():
    turns = iter([False, False, True])

    def loss():
        t = T.clone().requires_grad_()
        u = MODEL(t)
        slope = derivative(u, t, graph=next(turns))
        return (slope + u).square().mean()

    assert [event.place is None for event in reads(loss)] == [False, True]
