"""Samples that are repeated in another order than the rows beside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import SamplesCompared
from truestep.testing import capture_events

SAMPLES, STEPS, SIZE = 12, 3, 4


class Net(nn.Module):
    def __init__(self, join: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.one, self.each, self.last = nn.Linear(SIZE, 6), nn.Linear(SIZE, 6), nn.Linear(6, 3)
        self.join = join

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.join(self.one(x.mean(1)), self.each(x))))  # type: ignore[no-any-return]


def compared(join: Callable[[Tensor, Tensor], Tensor]) -> SamplesCompared:
    """Train a model, and return the comparison of samples."""
    torch.manual_seed(0)
    model = Net(join)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        for _ in range(6):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(SAMPLES, STEPS, SIZE)), torch.randint(0, 3, (SAMPLES,))).backward()
            optimizer.step()
    return next(event for event in events if isinstance(event, SamplesCompared))


def by_sample(rows: Tensor) -> Tensor:
    return rows.view(SAMPLES, STEPS, -1).sum(1)


def of_heads(h: Tensor, e: Tensor) -> Tensor:
    mask = (h[:, :STEPS] > 0).repeat(2, 1)
    scores = e.view(SAMPLES, STEPS, 2, 3).transpose(1, 2).reshape(2 * SAMPLES, STEPS, 3)
    weights = scores.masked_fill(mask[:, :, None], -1e9).softmax(1)
    return (weights * scores).view(SAMPLES, 2, STEPS, 3).sum(2).flatten(1)


@pytest.mark.parametrize(
    ("join", "kind"),
    [
        (lambda h, e: by_sample(h.repeat(STEPS, 1) * e.flatten(0, 1)), "repeat"),
        (lambda h, e: by_sample(torch.cat([h] * STEPS) + e.flatten(0, 1)), "cat"),
        (lambda h, e: (h.tile(STEPS, 1).view(SAMPLES, STEPS, 6) * e).sum(1), "tile"),
        (of_heads, "repeat"),
    ],
)
def test_another_order_is_named(join: Callable[[Tensor, Tensor], Tensor], kind: str) -> None:
    event = compared(join)
    assert (event.mixed, event.cause, event.kind) == (True, "repeat", kind)
    assert event.after[0] == SAMPLES * (2 if join is of_heads else STEPS)
    assert event.site is not None
    assert event.site.path == __file__


@pytest.mark.parametrize(
    "join",
    [
        lambda h, e: by_sample(h.repeat_interleave(STEPS, 0) * e.flatten(0, 1)),
        lambda h, e: (h.repeat(STEPS, 1) * e.transpose(0, 1).flatten(0, 1)).view(STEPS, SAMPLES, 6).sum(0),
        lambda h, e: (h.unsqueeze(1).repeat(1, STEPS, 1) * e).sum(1),
        lambda h, e: by_sample(torch.arange(STEPS).repeat(SAMPLES)[:, None] * e.flatten(0, 1)),
        lambda h, e: torch.cat([h, -h]).view(2, SAMPLES, 6).sum(0),
    ],
)
def test_the_same_order_is_right(join: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert not compared(join).mixed


def test_all_pairs_of_samples_are_not_named() -> None:
    def pairs(h: Tensor, e: Tensor) -> Tensor:
        return (h.repeat(SAMPLES, 1) * h.repeat_interleave(SAMPLES, 0)).view(SAMPLES, SAMPLES, 6).mean(1)

    event = compared(pairs)
    assert (event.mixed, event.cause) == (True, "")
