"""The operation of a model that runs over the samples of a batch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import SamplesCompared
from truestep.probes.active.over_samples import OverSamples, mixing
from truestep.testing import capture_events

SIZE = 12
"""Length of the sequences, and number of samples in a batch: their dimensions have the same length."""


class Net(nn.Module):
    """A model with one operation between two layers."""

    def __init__(self, operation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)
        self.operation = operation

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.operation(self.first(x)))  # type: ignore[no-any-return]


def compared(operation: Callable[[Tensor], Tensor], shape: tuple[int, ...] = (4,)) -> SamplesCompared:
    """Train a model, and return the comparison of samples."""
    torch.manual_seed(0)
    model = Net(operation)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        for _ in range(6):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(SIZE, *shape)), torch.randint(0, 3, (SIZE,))).backward()
            optimizer.step()
    return next(event for event in events if isinstance(event, SamplesCompared))


@pytest.mark.parametrize(
    ("operation", "shape", "name"),
    [
        (lambda h: h - h.mean(0), (4,), "mean"),
        (lambda h: h - h.mean(), (4,), "mean"),
        (lambda h: h - h.mean(dim=0, keepdim=True).expand_as(h), (4,), "mean"),
        (lambda h: h / h.amax(0), (4,), "amax"),
        (lambda h: h + h.sum(0).unsqueeze(0), (4,), "sum"),
        (lambda h: h[-1], (SIZE, 4), "select"),
        (lambda h: h.sum(0), (SIZE, 4), "sum"),
        (lambda h: h.masked_fill(h < h.mean(1, keepdim=True), float("-inf")).softmax(1) + h.mean(0), (4,), "mean"),
    ],
)
def test_the_operation_over_samples_is_named(
    operation: Callable[[Tensor], Tensor], shape: tuple[int, ...], name: str
) -> None:
    event = compared(operation, shape)
    assert (event.mixed, event.cause, event.kind) == (True, "operation", name)
    assert event.site is not None
    assert event.site.path == __file__


class Twofold(Net):
    """A model with two results, of which the operation makes the second one."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.last(self.first(x)), self.operation(self.first(x))


@pytest.mark.parametrize(
    ("operation", "mixed"),
    [(lambda h: h - h.mean(0), True), (lambda h: h.relu(), False), (lambda h: h @ h.T, False)],
    ids=["centred", "each", "scores of samples with one another"],
)
def test_each_result_with_a_row_for_each_sample_is_compared(operation: Callable[[Tensor], Tensor], mixed: bool) -> None:
    torch.manual_seed(0)
    model = Twofold(operation)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        for _ in range(6):
            optimizer.zero_grad()
            one, two = model(torch.randn(SIZE, 4))
            (F.cross_entropy(one, torch.randint(0, 3, (SIZE,))) + two.square().mean()).backward()
            optimizer.step()
    assert next(event for event in events if isinstance(event, SamplesCompared)).mixed is mixed


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (lambda h: h - h.mean(1, keepdim=True), (4,)),
        (lambda h: h[:, -1], (SIZE, 4)),
        (lambda h: h.sum(1), (SIZE, 4)),
        (lambda h: h.transpose(0, 1)[-1], (SIZE, 4)),
        (lambda h: h.transpose(0, 1).mean(0), (SIZE, 4)),
    ],
)
def test_operations_within_samples_do_not_mix_them(
    operation: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    assert not compared(operation, shape).mixed


@pytest.mark.parametrize(
    "operation",
    [
        lambda h: (h @ h.t()).softmax(-1) @ h,
        lambda h: h + h.roll(1, 0),
        lambda h: torch.cat([h[:, :5], h.std(0).mean().expand(len(h), 1)], 1),
        lambda h: h - h[:4].mean(0),
    ],
    ids=["attention", "neighbours", "spread", "support"],
)
def test_other_operations_over_samples_have_no_name(operation: Callable[[Tensor], Tensor]) -> None:
    event = compared(operation)
    assert (event.mixed, event.cause) == (True, "")


@pytest.mark.parametrize(("branch", "name"), [(lambda h: h, "mean"), (torch.relu, "")], ids=["the same", "another"])
def test_runs_of_different_operations_are_not_compared(branch: Callable[[Tensor], Tensor], name: str) -> None:
    record = OverSamples(SimpleNamespace(torch=torch, site=lambda: None), samples=4, at=0)  # type: ignore[arg-type]
    batch = torch.arange(20.0).reshape(4, 5)
    runs = []
    for others, last in ((1, lambda h: h), (2, branch)):
        batch[1:] *= others
        with record.mode():
            last(batch - batch.mean(0))
        runs.append(record.taken())
    assert mixing(*runs)[0] == name
