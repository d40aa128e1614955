"""Copies of a trained model that keep their values: from which step they are named, and which of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from truestep.events import CopyUnchanged
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


def test_a_copy_that_keeps_its_values_is_named_with_the_model_that_it_copied() -> None:
    event = named(30)[0]
    assert (event.path, event.equal, event.inside) == ("", True, False)
    assert len(event.parameters) == 2
    assert event.model != event.source
    assert event.steps >= 10


@pytest.mark.parametrize(
    "how", [{"steps": 9}, {"steps": 30, "follows": 0.05}], ids=["few steps", "an average that moves"]
)
def test_copies_that_are_not_named(how: dict[str, Any]) -> None:
    assert named(**how) == []


def test_a_model_of_the_same_shapes_with_other_values_is_no_copy() -> None:
    assert not any(event.equal for event in named(30, other=nn.ReLU))
