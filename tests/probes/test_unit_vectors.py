"""The dimension of norms before a product of matrices, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from truestep.events import UnitVectorsRead
from truestep.testing import capture_events

Tensor = torch.Tensor
Scores = Callable[[Tensor, Tensor], Tensor]
ROWS, PLACES, WIDTH = 6, 5, 8


def read(scores: Scores) -> list[UnitVectorsRead]:
    """Return the events of two steps with products of the outputs of two layers."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    x = torch.randn(ROWS, PLACES, WIDTH)
    with capture_events() as events:
        for _ in range(2):
            optimizer.zero_grad()
            F.mse_loss(scores(first(x), second(x).relu()).flatten(1).mean(1), x[:, 0, 0]).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, UnitVectorsRead)]


def heads(x: Tensor) -> Tensor:
    return x.view(ROWS, PLACES, 2, 4).transpose(1, 2)


def each(a: Tensor) -> Tensor:
    return F.normalize(a, dim=-1)


def by_hand(a: Tensor) -> Tensor:
    return a / (a.norm(dim=1, keepdim=True) + 1e-8)


def halves(a: Tensor) -> list[Tensor]:
    return [F.normalize(part) for part in a.chunk(2, -1)]


WRONG: list[Scores] = [
    lambda a, b: F.normalize(a) @ F.normalize(b).transpose(1, 2),
    lambda a, b: by_hand(a) @ by_hand(b).transpose(1, 2) / 0.1,
    lambda a, b: torch.einsum("itd,jud->ijtu", F.normalize(a), F.normalize(b)),
    lambda a, b: F.normalize(heads(a)) @ F.normalize(heads(b)).transpose(2, 3),
    lambda a, b: F.normalize(heads(a), dim=2) @ F.normalize(heads(b), dim=2).transpose(2, 3),
    lambda a, b: halves(a)[0] @ halves(a)[1].transpose(1, 2),
    lambda a, b: torch.stack([F.normalize(a) @ one.t() for one in F.normalize(b)]),
]
RIGHT: list[Scores] = [
    lambda a, b: each(a) @ each(b).transpose(1, 2),
    lambda a, b: each(heads(a)) @ each(heads(b)).transpose(2, 3),
]
UNJUDGED: list[Scores] = [
    lambda a, b: F.normalize(each(a), dim=1) @ each(b).transpose(1, 2),
    lambda a, b: F.normalize(a).transpose(1, 2) @ F.normalize(b),
    lambda a, b: each(a).transpose(1, 2) @ each(b),
    lambda a, b: F.normalize(a) @ b.transpose(1, 2),
    lambda a, b: F.normalize(a.mean(1)) @ F.normalize(b.mean(1)).t(),
    lambda a, b: F.normalize(a.transpose(1, 2)) @ F.normalize(b.transpose(1, 2)).transpose(1, 2),
]


@pytest.mark.parametrize("scores", WRONG)
def test_norms_along_other_dimensions_than_the_features_are_read(scores: Scores) -> None:
    found = read(scores)
    assert [event.apart for event in found] == [True, True]
    assert all(event.files and event.dim in (1, 2) for event in found)


@pytest.mark.parametrize("scores", RIGHT)
def test_norms_of_features_are_right(scores: Scores) -> None:
    assert [event.apart for event in read(scores)] == [False, False]


@pytest.mark.parametrize("scores", UNJUDGED)
def test_other_products_are_not_wrong(scores: Scores) -> None:
    assert not any(event.apart for event in read(scores))
