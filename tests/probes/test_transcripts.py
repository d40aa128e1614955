"""Inputs and targets of the CTC loss, as modules and functions call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import TranscriptsRead
from truestep.testing import capture_events

FRAMES, LENGTHS = torch.tensor([12, 12, 10]), torch.tensor([4, 3, 2])
TARGETS = torch.tensor([[1, 2, 3, 4], [4, 3, 1, 0], [2, 1, 0, 0]])
Loss = Callable[[Tensor], Tensor]


def read(loss_of: Loss) -> list[tuple[str, int, int]]:
    """Train on a CTC loss; return the kinds of its inputs, its blanks, and their percentage among the targets."""
    torch.manual_seed(0)
    model = nn.Linear(4, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(5):
            optimizer.zero_grad()
            loss_of(model(torch.rand(12, 3, 4))).backward()
            optimizer.step()
        with torch.no_grad():
            loss_of(model(torch.rand(12, 3, 4)))
    return [(one.values, one.blank, one.blanks) for one in events if isinstance(one, TranscriptsRead)]


def loss(logs: Tensor, targets: Tensor = TARGETS, lengths: Any = LENGTHS, **options: Any) -> Tensor:
    return F.ctc_loss(logs, targets, FRAMES, lengths, **options)


@pytest.mark.parametrize(
    ("loss_of", "values"),
    [
        (lambda out: loss(out.log_softmax(-1)), "log-probabilities"),
        (lambda out: F.ctc_loss(out.log_softmax(-1)[:, 0], TARGETS[0], FRAMES[0], LENGTHS[0]), "log-probabilities"),
        (lambda out: nn.CTCLoss()(out.log_softmax(2), TARGETS, FRAMES, LENGTHS), "log-probabilities"),
        (loss, "others"),
        (lambda out: loss(out.softmax(-1)), "probabilities"),
        (lambda out: loss(out.log_softmax(0)), "others"),
    ],
    ids=["function", "one sample", "module", "logits", "probabilities", "over time"],
)
def test_the_kind_of_the_inputs_is_read_in_the_first_sampled_steps(loss_of: Loss, values: str) -> None:
    assert read(loss_of) == [(values, 0, 0)] * 3


def test_blanks_are_counted_among_the_targets_without_padding() -> None:
    def of(targets: Tensor, **options: Any) -> tuple[str, int, int]:
        return read(lambda out: loss(out.log_softmax(-1), targets, **options))[0]

    flat = TARGETS[torch.arange(4) < LENGTHS[:, None]]
    assert of(TARGETS - 1)[1:] == (0, 33)
    assert of(flat)[1:] == (0, 0)
    assert of(flat - 1)[1:] == (0, 33)
    assert of(TARGETS, blank=4)[1:] == (4, 22)
    assert of(TARGETS - 1, blank=5)[1:] == (5, 0)
    plain = read(lambda out: F.ctc_loss(out.log_softmax(-1), TARGETS, (12, 12, 10), (4, 3, 2)))
    assert plain[0][1:] == (0, 0)
