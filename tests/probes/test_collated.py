"""Collate functions are called again on the same samples in another order: which parts of a batch stay together."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from truestep.events import CollatedAgain
from truestep.testing import capture_events

DRAW = torch.Generator().manual_seed(2)
SAMPLES: Any = [(torch.randn(3, generator=DRAW), place % 7, torch.randn(2, generator=DRAW)) for place in range(64)]


class Stored(Dataset[Any]):
    def __len__(self) -> int:
        return len(SAMPLES)

    def __getitem__(self, index: int) -> Any:
        return SAMPLES[index]


class Join:
    """Sorts the inputs, and not their labels."""

    def __call__(self, batch: list[Any]) -> Any:
        xs = sorted((x for x, *_ in batch), key=float_of)
        return torch.stack(xs), torch.tensor([y for _, y, _ in batch])

    def joined(self, batch: list[Any]) -> Any:
        return self(batch)


def float_of(x: torch.Tensor) -> float:
    return float(x[0])


def apart(batch: list[Any]) -> Any:
    xs = sorted((x for x, *_ in batch), key=float_of)
    return torch.stack(xs), torch.tensor([y for _, y, _ in batch]), torch.stack([z for *_, z in batch])


def together(batch: list[Any]) -> Any:
    batch = sorted(batch, key=lambda sample: float_of(sample[0]))
    return torch.stack([x for x, *_ in batch]), torch.tensor([y for _, y, _ in batch])


def negatives(batch: list[Any]) -> Any:
    z = torch.stack([z for *_, z in batch])
    return torch.stack([x for x, *_ in batch]), z, z.roll(1, 0)


def drawn(batch: list[Any]) -> Any:
    return torch.stack([x for x, *_ in batch]), torch.tensor([random.random() for _ in batch]), torch.rand(len(batch))


def numbered(batch: list[Any]) -> Any:
    return torch.stack([x for x, *_ in batch]), torch.arange(len(batch))


def told(join: Any, data: Any = SAMPLES) -> list[CollatedAgain]:
    states = torch.get_rng_state(), random.getstate()
    with capture_events() as events:
        for _batch in DataLoader(data, batch_size=16, collate_fn=join, generator=torch.Generator()):
            pass
        for _batch in DataLoader(data, batch_size=16, collate_fn=join, generator=torch.Generator()):
            pass
    assert (torch.get_rng_state() == states[0]).all()
    assert random.getstate() == states[1]
    return [event for event in events if isinstance(event, CollatedAgain)]


@pytest.mark.parametrize("data", [SAMPLES, Stored()], ids=["list", "data set"])
def test_parts_in_orders_of_their_own(data: Any) -> None:
    one, two = told(apart, data)
    assert one.function == "apart"
    assert one.crossed == (("batch[0]", "batch[1]"), ("batch[0]", "batch[2]"))
    assert one.made is not None
    assert one.made.line == apart.__code__.co_firstlineno + 1
    assert one.loader != two.loader


@pytest.mark.parametrize("join", [Join(), Join().joined], ids=["object", "method"])
def test_objects_that_join_samples(join: Any) -> None:
    (one, _) = told(join)
    assert one.function == ("Join" if isinstance(join, Join) else "joined")
    assert one.crossed == (("batch[0]", "batch[1]"),)


@pytest.mark.parametrize("join", [together, negatives, numbered])
def test_parts_that_belong_together_or_to_their_places(join: Callable[[list[Any]], Any]) -> None:
    assert {one.crossed for one in told(join)} == {()}


def test_a_part_that_is_drawn_is_no_part_of_a_sample() -> None:
    with capture_events() as events:
        for _ in range(2):
            for _batch in DataLoader(SAMPLES, batch_size=16, collate_fn=drawn):
                pass
    assert [event.crossed for event in events if isinstance(event, CollatedAgain)] == [(), ()]


def test_functions_with_effects_and_small_data_are_not_called() -> None:
    seen: list[Any] = []

    def counts(batch: list[Any]) -> Any:
        seen.append(len(batch))
        return apart(batch)

    assert told(counts) == []
    assert len(seen) == 8
    assert told(apart, SAMPLES[:20]) == []
    assert told(None) == []
