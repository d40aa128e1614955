"""Labels of losses that expect -1 and 1, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from truestep.events import SignedLabelsRead
from truestep.testing import capture_events

Tensor = torch.Tensor
Loss = Callable[[Tensor, Tensor], Tensor]
ROWS = 12
ZEROS = (torch.arange(ROWS) % 3 == 0).float()
SIGNS = 2 * ZEROS - 1


def read(loss: Loss, labels: Tensor) -> list[tuple[str, int]]:
    """Return the labels that are read at two steps of a training with a loss of scores of shape (rows, 4)."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    x = torch.randn(ROWS, 6)
    with capture_events() as events:
        for _ in range(2):
            optimizer.zero_grad()
            loss(layer(x), labels).backward()
            optimizer.step()
    found = [(event.kind, event.zeros) for event in events if isinstance(event, SignedLabelsRead)]
    assert found[1:] == found[:1] * (len(found) - 1)
    return found[:1]


LOSSES: list[tuple[Loss, str]] = [
    (lambda out, y: torch.relu(1 - y * out[:, 0]).mean(), "hinge"),
    (lambda out, y: 0.5 * (1 - out[:, 0] * y).clamp(min=0).sum() + 1e-3 * out.square().mean(), "hinge"),
    (lambda out, y: torch.maximum(torch.zeros(ROWS), 0.3 - y * out[:, 0]).mean(), "hinge"),
    (lambda out, y: F.margin_ranking_loss(out[:, 0], out[:, 1], y, margin=0.5), "hinge"),
    (lambda out, y: F.softplus(-y * out[:, 0]).mean(), "logistic"),
    (lambda out, y: torch.log1p(torch.exp(-y * out[:, 0])).mean(), "logistic"),
    (lambda out, y: F.soft_margin_loss(out[:, 0], y), "soft margin"),
    (lambda out, y: F.cosine_embedding_loss(out[:, :2], out[:, 2:], y, margin=0.1), "cosine embedding"),
    (lambda out, y: F.hinge_embedding_loss(out.norm(dim=1), y), "hinge embedding"),
]


@pytest.mark.parametrize(("loss", "kind"), LOSSES)
def test_labels_of_zero_and_one_are_read(loss: Loss, kind: str) -> None:
    ((found, zeros),) = read(loss, ZEROS)
    assert found == kind
    assert zeros == 67


@pytest.mark.parametrize(("loss", "kind"), LOSSES)
def test_labels_with_signs_are_right(loss: Loss, kind: str) -> None:
    assert all(zeros == 0 for _, zeros in read(loss, SIGNS))


QUIET: list[Loss] = [
    lambda out, y: (torch.relu(1 - out[:, 0]) * y).mean(),
    lambda out, y: torch.relu(y * out[:, 0]).mean(),
    lambda out, y: torch.relu(1 - (y + 0.5) * out[:, 0]).mean(),
    lambda out, y: torch.relu(1 - y[:1] * out[:, 0]).mean(),
    lambda out, y: (1 - y * out[:, 0]).clamp(0, 1).mean(),
    lambda out, y: (y * out[:, 0].square() + (1 - y) * torch.relu(1 - out[:, 0]).square()).mean(),
    lambda out, y: torch.where(y == 1, out[:, 0].square(), torch.relu(1 - out[:, 0])).mean(),
    lambda out, y: F.binary_cross_entropy_with_logits(out[:, 0], y),
    lambda out, y: F.softplus((1 - 2 * y) * out[:, 0]).mean(),
]


@pytest.mark.parametrize("loss", QUIET)
def test_other_losses_are_quiet(loss: Loss) -> None:
    assert not any(zeros for _, zeros in read(loss, ZEROS))


def test_ties_of_a_ranking_are_quiet() -> None:
    ties = (torch.arange(ROWS) % 3 - 1).float()
    assert read(lambda out, y: F.margin_ranking_loss(out[:, 0], out[:, 1], y), ties) == []
