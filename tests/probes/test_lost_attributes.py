"""Attributes with a next value that a local variable gets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from truestep.events import ValueUnread
from truestep.probes.context.sites import Sites
from truestep.probes.unread.attributes import lost_attributes
from truestep.testing import capture_events


class Standardised(nn.Module):
    """Statistics of the samples that are kept as buffers, and never updated."""

    def __init__(self) -> None:
        super().__init__()
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(4))
        self.layer = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            mean = 0.9 * self.mean + 0.1 * x.mean(0)  # noqa: F841
            return self.layer(x - x.mean(0))  # type: ignore[no-any-return]
        return self.layer(x - self.mean)  # type: ignore[no-any-return]


class Scale:
    """A plain object with a running number, which another object may set."""

    def __init__(self) -> None:
        self.size, self.rate = 1.0, 0.1

    def __call__(self, x: Tensor) -> Tensor:
        size = self.size + self.rate * float(x.detach().abs().mean())  # noqa: F841
        return x / self.size


class Healthy:
    """Values that a method reads, returns, or makes of constants, and attributes that another method changes."""

    def __init__(self) -> None:
        self.mean, self.rate, self.total, self.peak, self.unread, self.kept = 0.0, 0.1, 0.0, 1.0, 2.0, torch.zeros(1)

    def __call__(self, x: Tensor) -> Tensor:
        mean = 0.9 * self.mean + 0.1 * float(x.detach().mean())
        rate = 2 * self.rate  # noqa: F841
        total = self.total + float(x.detach().sum())  # noqa: F841
        unread = self.unread * float(x.detach().sum())  # noqa: F841
        kept = self.kept * x.detach().mean()  # noqa: F841
        self.mean = mean
        return x - self.total - self.rate * self.kept

    def peak_of(self, x: float) -> float:
        peak = max(self.peak, x) + self.peak * x
        return peak + self.peak

    def add(self, x: float) -> None:
        self.total += x
        self.kept.add_(x)


@pytest.fixture(autouse=True)
def _this_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program be this file: a process with all tests has more files than are read."""
    monkeypatch.setattr(Sites, "own_files", lambda sites: [__file__])


def emitted(part: nn.Module | Scale | Healthy, steps: int = 6, moves: bool = False) -> list[tuple[str, int]]:
    torch.manual_seed(0)
    layer = nn.Linear(4, 1) if not isinstance(part, nn.Module) else part
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(steps):
            result = layer(torch.rand(8, 4))
            result = result if part is layer else part(result)
            if moves and isinstance(part, Scale):
                part.size += 0.5
            optimizer.zero_grad()
            result.square().mean().backward()
            optimizer.step()
    found = [event for event in events if isinstance(event, ValueUnread) and event.kind == "attribute"]
    return [(event.name, event.site.line if event.site else 0) for event in found]


def test_an_attribute_that_keeps_its_value_is_found() -> None:
    assert emitted(Standardised()) == [("mean", Standardised.forward.__code__.co_firstlineno + 2)]
    assert emitted(Scale()) == [("size", Scale.__call__.__code__.co_firstlineno + 1)]


def test_an_attribute_that_another_object_changes_is_quiet() -> None:
    assert emitted(Scale(), moves=True) == []


def test_other_variables_are_quiet() -> None:
    assert emitted(Healthy()) == []
    assert {one.owner for one in lost_attributes(__file__)} == {"Standardised", "Scale"}


def test_few_steps_are_quiet() -> None:
    assert emitted(Scale(), steps=2) == []


@pytest.mark.parametrize("text", ["", "class A:\n    def f(self):\n        x = = self.x\n", "x = self.x\n"])
def test_files_without_such_a_class_have_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(text)
    assert lost_attributes(str(path)) == ()
    assert lost_attributes(str(tmp_path / "missing.py")) == ()
