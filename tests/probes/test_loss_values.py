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


def blanks(loss_of):
    """Train a decoder of which the first outputs are zeros; return the rows of zeros that its losses counted."""
    torch.manual_seed(0)
    model = nn.Linear(4, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(6):
            targets, outputs = torch.randint(1, 10, (8, 5)), torch.zeros(8, 5, 10)
            for t in range(1, 5):
                outputs[:, t] = model(torch.rand(8, 4))
            optimizer.zero_grad()
            loss_of(outputs, targets).backward()
            optimizer.step()
    return [one.blank for one in events if isinstance(one, ev.LossComputed) and one.blank is not None]


def test_rows_that_nothing_has_computed_are_counted_in_each_layout():
    entropy = nn.functional.cross_entropy
    assert blanks(lambda out, y: entropy(out.flatten(0, 1), y.flatten())) == [8, 8, 8]
    assert blanks(lambda out, y: entropy(out.transpose(0, 1).flatten(0, 1), y.t().flatten())) == [8, 8, 8]
    assert blanks(lambda out, y: entropy(out[:, :-1].transpose(1, 2), y[:, 1:])) == [8, 8, 8]


def test_rows_that_are_left_out_and_rows_of_an_activation_are_not_counted():
    entropy = nn.functional.cross_entropy
    assert blanks(lambda out, y: entropy(out[:, 1:].transpose(1, 2), y[:, 1:])) == [0, 0, 0]
    first = torch.arange(5) == 0
    assert blanks(lambda out, y: entropy(out.transpose(1, 2), y.masked_fill(first, -100))) == [0, 0, 0]
    assert (
        blanks(lambda out, y: entropy((out[:, 1:, :2] - 0.2).relu().flatten(0, 1), y[:, 1:].flatten() % 2)) == [0] * 3
    )
    assert blanks(lambda out, y: entropy((out * 0).transpose(1, 2) + 0 * out.sum(), y)) == [0, 0, 0]


@pytest.mark.parametrize(("rate", "moved"), [(0.0, False), (1e-7, False), (1e-4, True)])
def test_a_change_in_later_digits_is_more_than_rounding_errors(rate, moved):
    steps = iter(range(100))

    def loss_of(logits, y):
        return nn.functional.cross_entropy(logits, y) * 0 + 529.8 * (1 + rate * next(steps) / 30)

    found = reads(loss_of)
    assert {event.value for event in found} == {529.8}
    assert any(event.moved for event in found) is moved
