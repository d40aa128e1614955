"""Copies of a trained model that keep their values: from which step they are named, and which of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from truestep.events import CopyUnchanged, ModelAliased
from truestep.testing import capture_events


def named(steps: int, *, follows: float = 0.0, other: type[nn.Module] | None = None) -> list[CopyUnchanged]:
    """Train a model and call a copy of it in each step; return the events on copies."""
    torch.manual_seed(0)
    online = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    target = copy.deepcopy(online) if other is None else nn.Sequential(nn.Linear(3, 4), other())
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(steps):
            x = torch.randn(8, 3)
            with torch.no_grad():
                aim = target(x)
            loss = (online(x) - 2 * aim).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for one, its in zip(target.parameters(), online.parameters(), strict=True) if follows else ():
                one.data.lerp_(its.data, follows)
    return [event for event in events if isinstance(event, CopyUnchanged)]


@pytest.mark.program
def test_a_copy_that_keeps_its_values_is_named_with_the_model_that_it_copied() -> None:
    event = named(30)[0]
    assert (event.path, event.equal, event.inside) == ("", True, False)
    assert len(event.parameters) == 2
    assert event.model != event.source
    assert event.steps >= 10


@pytest.mark.parametrize(
    "how",
    [{"steps": 9}, pytest.param({"steps": 30, "follows": 0.05}, marks=pytest.mark.program)],
    ids=["few steps", "an average that moves"],
)
def test_copies_that_are_not_named(how: dict[str, Any]) -> None:
    assert named(**how) == []


def staged(
    *, before: int = 0, follows: range = range(0), calls: tuple[int, ...] = (), steps: int = 95
) -> list[CopyUnchanged]:
    """Train a model whose copy is first called after some steps, follows in some, and is called again in others."""
    torch.manual_seed(0)
    online = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    copied = copy.deepcopy(online)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(steps):
            if step == before or step in calls:
                copied(torch.ones(2, 3))
            x = torch.randn(8, 3)
            optimizer.zero_grad()
            (online(x) - 2).square().mean().backward()
            optimizer.step()
            for one, its in zip(copied.parameters(), online.parameters(), strict=True) if step in follows else ():
                one.data.lerp_(its.data, 0.5)
    return [event for event in events if isinstance(event, CopyUnchanged)]


@pytest.mark.program
def test_a_copy_that_is_called_before_the_training_only_is_not_used() -> None:
    assert {event.used for event in staged()} == {False}
    assert [event.used for event in staged(calls=(80,))][-1]


@pytest.mark.program
def test_a_copy_that_followed_before_its_first_call_has_other_values_than_the_first() -> None:
    late = staged(before=30, calls=(40, 60, 80), follows=range(20))
    assert {event.first for event in late} == {False}
    assert {event.first for event in staged(before=30, calls=(40, 60, 80))} == {True}


@pytest.mark.program
def test_a_copy_that_moves_after_the_last_look_is_told() -> None:
    assert [event.moved for event in staged(calls=(20, 90), follows=range(70, 90))][-1]


@pytest.mark.program
def test_a_model_of_the_same_shapes_with_other_values_is_no_copy() -> None:
    assert not any(event.equal for event in named(30, other=nn.ReLU))


def ensemble(members: Callable[[nn.Module], Any], *, eval: bool = True) -> list[ModelAliased]:
    """Train a model, and call the members of an ensemble that a function makes of it."""
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(2):
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
        predict(members(net), eval=eval)
    return [event for event in events if isinstance(event, ModelAliased)]


def predict(models: Any, *, eval: bool) -> torch.Tensor:
    with torch.no_grad():
        members = models.values() if isinstance(models, dict) else models
        return torch.stack([model.train(not eval)(torch.ones(2, 3)) for model in members]).mean(0)


@pytest.mark.parametrize(
    "members", [lambda net: [net] * 3, lambda net: (net, net, net), lambda net: {0: net, 1: net, 2: net}]
)
def test_an_ensemble_that_holds_one_model_is_emitted(members: Callable[[nn.Module], Any]) -> None:
    (event,) = ensemble(members)
    assert (event.name, event.times) == ("models", 3)


def test_ensembles_of_several_models_and_of_draws_of_one_are_not() -> None:
    assert not ensemble(lambda net: [net, nn.Linear(3, 1)])
    assert not ensemble(lambda net: [net, copy.deepcopy(net)])
    assert not ensemble(lambda net: [net])
    assert not ensemble(lambda net: [nn.Sequential(net, nn.Dropout(0.1))] * 3, eval=False)


def test_names_of_roles_in_a_dict_are_not_members_of_an_ensemble() -> None:
    assert not ensemble(lambda net: {"last": net, "best": net})
    assert len(ensemble(lambda net: {"net_0": net, "net_1": net})) == 1


def test_the_mode_is_not_asked_of_models_without_layers_that_depend_on_it() -> None:
    assert len(ensemble(lambda net: [net] * 3, eval=False)) == 1


@pytest.mark.parametrize("frozen", [True, False])
def test_a_copy_among_the_parameters_of_an_optimizer_is_named_while_it_is_frozen(frozen: bool) -> None:
    torch.manual_seed(0)
    online = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    target = copy.deepcopy(online).requires_grad_(not frozen)
    optimizer = torch.optim.SGD([*online.parameters(), *target.parameters()], lr=0.1)
    with capture_events() as events:
        for _ in range(30):
            x = torch.randn(8, 3)
            with torch.no_grad():
                aim = target(x)
            loss = (online(x) - 2 * aim).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert any(isinstance(event, CopyUnchanged) for event in events) == frozen
