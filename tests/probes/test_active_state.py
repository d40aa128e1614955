"""Tensors in plain attributes: those that the training of a model writes, and saves without them."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn

from truestep.config import Options
from truestep.events import CheckSkipped, PlainStateCompared, PlainStateSaved
from truestep.supervision import Session

X, Y = 5 + torch.randn(40, 4), torch.randint(0, 2, (40,))


class Running(nn.Module):
    """Subtracts a running mean."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.mean, self.shadow, self.constant = torch.zeros(4), torch.zeros(4), torch.ones(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
            self.shadow = x[0]
        return self.head((x - self.mean) * self.constant)  # type: ignore[no-any-return]


class InEvaluationToo(Running):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return self.head(x - self.mean)  # type: ignore[no-any-return]


class WrittenAgain(Running):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = x.mean(0)
        return self.head(x - self.mean)  # type: ignore[no-any-return]


class View(nn.Module):
    """Holds a part of a buffer in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.register_buffer("all", torch.zeros(6))
        self.mean = self.all[:4]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean.lerp_(x.mean(0), 0.5)
        return self.head(x - self.mean)  # type: ignore[no-any-return]


class OwnState(Running):
    def get_extra_state(self) -> Any:
        return self.mean


def told(model: nn.Module, save: Any = lambda model: None) -> list[Any]:
    """Train, evaluate and save; return the events about the state."""
    torch.manual_seed(0)
    events: list[Any] = []
    with Session(Options(active=True), also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            nn.functional.cross_entropy(model(X), Y).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            model(X)
        save(model)
    assert session.stop().internal_errors == ()
    kinds = PlainStateCompared, PlainStateSaved, CheckSkipped
    return [event for event in events if isinstance(event, kinds) and getattr(event, "check", "state") == "state"]


@pytest.mark.parametrize(
    ("model", "depends"),
    [
        (Running(), ("mean",)),
        (nn.Sequential(nn.Identity(), Running()), ("1.mean",)),
        (InEvaluationToo(), ()),
        (WrittenAgain(), ()),
        (View(), ()),
        (nn.Linear(4, 2), ()),
    ],
    ids=["running", "inside", "hidden-state", "cache", "part-of-a-buffer", "none"],
)
def test_attributes_that_results_depend_on_are_emitted(model: nn.Module, depends: tuple[str, ...]) -> None:
    (event,) = told(model)
    assert event.depends == depends


def test_a_model_with_a_state_of_its_own_is_passed_over() -> None:
    (event,) = told(OwnState())
    assert event.reason == "the state of the model was not checked: it has custom methods or hooks for its state"


def write(thing: object) -> None:
    torch.save(thing, io.BytesIO())


@pytest.mark.parametrize(
    ("save", "missing", "held"),
    [
        (lambda model: write(model.state_dict()), ("mean", "shadow"), ()),
        (lambda model: write({"nets": [model.state_dict()], "mean": model.mean.clone()}), ("shadow",), ("mean",)),
        (lambda model: write(model), (), ("mean", "shadow")),
        (lambda model: write([model.mean]), (), ("mean",)),
        (lambda model: write({"head": model.head.state_dict()}), (), ()),
    ],
    ids=["state", "beside", "whole", "apart", "part"],
)
def test_saves_are_emitted(save: Any, missing: tuple[str, ...], held: tuple[str, ...]) -> None:
    _, event = told(Running(), save)
    assert (event.missing, event.held) == (missing, held)


def test_a_model_with_a_part_in_train_mode_is_passed_over() -> None:
    class Kept(Running):
        def __init__(self) -> None:
            super().__init__()
            self.noise = nn.Dropout(0.5)

        def train(self, mode: bool = True) -> Kept:
            super().train(mode)
            self.noise.train()
            return self

    (event,) = told(Kept())
    assert event.reason == "the state of the model was not checked: a part of it is in train mode"
