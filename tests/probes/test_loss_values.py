"""Values of classification losses are read at sampled steps, where backward reads the loss in any case."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from truestep import events as ev
from truestep.testing import capture_events


def reads(loss_of, steps=30):
    torch.manual_seed(0)
    model = nn.Linear(4, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x, y = torch.zeros(8, 4), torch.arange(8)
    model.bias.data.zero_()
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, ev.LossRead)]


@pytest.mark.parametrize(
    "loss",
    [
        nn.functional.cross_entropy,
        lambda logits, y: nn.functional.nll_loss(logits.log_softmax(1), y),
        lambda logits, y: nn.functional.cross_entropy(logits.reshape(2, 10, 4), y.reshape(2, 4)),
    ],
)
def test_sampled_steps(loss):
    found = reads(loss)
    assert len(found) == 7  # steps 0 to 3, 10 and 20, and the end
    assert found[0].value == pytest.approx(math.log(10), abs=1e-3)
    assert found[0].root.startswith("NllLoss")
    assert found[0].site.path == __file__


@pytest.mark.parametrize(
    ("loss", "root", "scaled"),
    [
        (lambda logits, y: nn.functional.cross_entropy(logits, y) / 4, "NllLossBackward0", True),
        (lambda logits, y: nn.functional.mse_loss(logits[:, 0], y.float()), "MseLossBackward0", False),
        (lambda logits, y: nn.functional.cross_entropy(logits, y) + logits.mean(), "AddBackward0", False),
    ],
    ids=["divided", "another", "a sum"],
)
def test_the_operation_before_a_scaling_names_the_loss(loss, root, scaled):
    assert {(event.root, event.scaled) for event in reads(loss)} == {(root, scaled)}
