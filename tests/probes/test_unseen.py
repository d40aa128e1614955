"""Modes and tensor classes that see every call of torch see the same calls with and without a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

from truestep.supervision import Session


class Dispatched(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[str(func)] += 1
        return func(*args, **(kwargs or {}))


class Called(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[getattr(func, "__name__", str(func))] += 1
        return func(*args, **(kwargs or {}))


class Seeing(torch.Tensor):
    seen: Counter[str] = Counter()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen[getattr(func, "__name__", str(func))] += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@contextmanager
def counted(mode: Any, counts: list[Counter[str]]) -> Iterator[None]:
    with mode:
        yield
    counts.append(mode.seen)


def steps(kind: type) -> list[Counter[str]]:
    """Train for steps that are looked at closely, in full, and coasting; the mode is entered again for each."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    counts: list[Counter[str]] = []
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), 8, shuffle=True)
    for _ in range(60):
        with counted(kind(), counts):
            (x,) = next(iter(loader))
            loss = nn.functional.cross_entropy(model(x), x[:, 0].gt(0).long())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return counts


@pytest.mark.parametrize("kind", [Dispatched, Called])
def test_a_mode_sees_the_calls_of_the_script_alone(kind: type) -> None:
    plain = steps(kind)
    with Session() as session:
        watched = steps(kind)
    assert watched == plain
    summary = session.stop()
    assert summary.internal_errors == ()
    assert summary.steps == 60


def test_a_mode_entered_while_coasting_sees_no_more() -> None:
    def late(mode: Any) -> Counter[str]:
        torch.manual_seed(0)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(120):
            with mode if step == 77 else torch.enable_grad():
                optimizer.zero_grad()
                model(torch.ones(2, 4)).square().mean().backward()
                optimizer.step()
        return mode.seen

    plain = late(Called()), late(Dispatched())
    with Session() as session:
        assert (late(Called()), late(Dispatched())) == plain
    assert session.stop().internal_errors == ()


def test_a_class_of_tensors_sees_the_calls_of_the_script_alone() -> None:
    def train() -> Counter[str]:
        torch.manual_seed(0)
        Seeing.seen = Counter()
        weights = [nn.Parameter(torch.randn(3).as_subclass(Seeing)) for _ in range(3)]
        optimizer = torch.optim.Adam(weights, lr=0.1)
        for _ in range(30):
            optimizer.zero_grad()
            sum((w * torch.ones(3)).square().sum() for w in weights).backward()
            optimizer.step()
        return Seeing.seen

    plain = train()
    with Session() as session:
        assert train() == plain
    assert session.stop().internal_errors == ()


def test_the_modes_are_back_where_the_script_goes_on() -> None:
    def default_device_and_mode(learn: Callable[[], None]) -> tuple[int, int]:
        with torch.device("cpu"), Called(), Dispatched():
            learn()
            return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()

    def learn() -> None:
        weight = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (weight * 2).sum().backward()
            optimizer.step()

    with Session() as session:
        assert default_device_and_mode(learn) == (2, 1)
    assert session.stop().internal_errors == ()
