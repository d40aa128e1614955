"""Rows that embeddings are read at, in calls of training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from truestep.events import EmbeddingRead
from truestep.testing import capture_events


class Words(nn.Module):
    """Words and their positions."""

    def __init__(self, at: torch.Tensor, width: int = 4) -> None:
        super().__init__()
        self.at = at
        self.words, self.places = nn.Embedding(20, width), nn.Embedding(30, width)
        self.head = nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(tokens) + self.places(self.at)).mean()


class Factors(nn.Module):
    """Users and items; the argument for the items is used as ``use`` says."""

    def __init__(self, use: str = "") -> None:
        super().__init__()
        self.users, self.items, self.use = nn.Embedding(20, 4), nn.Embedding(40, 4), use

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return (self.users(user) * self.items(user)).sum()


class Weighted(Factors):
    """The same, with the other argument as a weight."""

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return ((self.users(user) * self.items(user)).sum(1) * item).sum()


class Pairs(Factors):
    """Users and items in one tensor."""

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return (self.users(pairs[:, 0]) * self.items(pairs[:, 0])).sum()


class BothColumns(Factors):
    """The same, with both columns."""

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return (self.users(pairs[:, 0]) * self.items(pairs[:, 0])).sum() + self.items(pairs[..., 1]).sum()


class Biased(Factors):
    """Users and items with shifts of both; the shift of items is read at the ids of items."""

    def __init__(self) -> None:
        super().__init__()
        self.user_shift, self.item_shift = nn.Embedding(20, 1), nn.Embedding(40, 1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        shift = self.user_shift(user) + self.item_shift(item)
        return ((self.users(user) * self.items(user)).sum(1) + shift.squeeze(1)).sum()


class Hashed(nn.Module):
    """Two fields, each with hash tables of two sizes; the ids are smaller than both."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Embedding(rows, 4) for rows in (41, 53, 41, 53))

    def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        first = self.a(one % 41) + self.b(one % 53)
        return (first * (self.c(two % 41) + self.d(two % 53))).sum()


def reads(model: nn.Module, *given: torch.Tensor) -> dict[str, EmbeddingRead]:
    """Return the reads of one step, by the name of the embedding."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        model(*given).sum().backward()
        optimizer.step()
    return {event.name: event for event in events if isinstance(event, EmbeddingRead)}


TOKENS = torch.randint(0, 20, (6, 12), generator=torch.Generator().manual_seed(0))
USER, ITEM = torch.arange(30) % 17, torch.arange(30) * 7 % 39


@pytest.mark.parametrize(
    ("places", "row", "positions"),
    [
        (torch.zeros(12, dtype=torch.long), 0, True),
        (torch.full((1, 12), 3), 3, True),
        (torch.arange(12), None, True),
        (torch.zeros(6, 12, dtype=torch.long), 0, False),
        (torch.zeros(6, 1, dtype=torch.long), 0, False),
    ],
)
def test_ids_are_of_positions_if_all_samples_share_them(places, row, positions):
    found = reads(Words(places), TOKENS)
    assert (found["places"].row, found["places"].positions) == (row, positions)
    assert (found["words"].row, found["words"].positions, found["words"].length) == (None, False, 12)


def test_ids_for_each_sample_are_not_of_positions():
    assert not reads(Words(torch.zeros(6, dtype=torch.long)), TOKENS[:, :6])["places"].positions


def test_ids_of_another_embedding_are_found_where_an_argument_is_not_read():
    found = reads(Factors(), USER, ITEM)
    assert (found["items"].twin, found["items"].unread) == ("users", "item")
    assert found["users"].twin == ""
    assert reads(Pairs(), torch.stack([USER, ITEM], 1))["items"].unread == "pairs[:, 1]"


def test_ids_of_another_embedding_are_found_beside_an_embedding_of_equal_size():
    found = reads(Biased(), USER, ITEM)
    assert (found["items"].twin, found["items"].unread, found["items"].beside) == ("user_shift", "", "item_shift")
    assert {name for name, event in found.items() if event.twin} == {"items"}


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (Weighted(), (USER, ITEM)),
        (BothColumns(), (torch.stack([USER, ITEM], 1),)),
        (Factors(), (USER, USER)),
        (Factors(), (USER, ITEM % 5)),
        (Factors(), (USER, ITEM.float())),
        (Hashed(), (USER, ITEM)),
    ],
    ids=["used as a weight", "both columns", "the same ids", "few labels", "not whole numbers", "hash tables"],
)
def test_other_arguments_are_not_ids_that_nothing_reads(model, given):
    assert all(event.twin == "" for event in reads(model, *given).values())


def test_evaluations_are_not_read():
    model = Words(torch.arange(12))
    with capture_events() as events, torch.no_grad():
        model(TOKENS)
    assert not [event for event in events if isinstance(event, EmbeddingRead)]
