"""DataLoaders: started, drawn from, read to their end or left by a break."""

from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, random_split

from truestep.events import BatchDrawn, Event, LoaderEnded, LoaderMet, LoaderStarted
from truestep.testing import capture_events

DATA = TensorDataset(torch.arange(12.0))


def kinds(events: list[Event]) -> list[str]:
    wanted = (LoaderMet, LoaderStarted, BatchDrawn, LoaderEnded)
    return [type(event).__name__ for event in events if isinstance(event, wanted)]


def test_an_epoch_and_a_break() -> None:
    with capture_events() as events:
        loader = DataLoader(DATA, 4, shuffle=True)
        for _ in loader:
            pass
        for _ in loader:
            break
    drawn = ["BatchDrawn"] * 3
    assert kinds(events) == ["LoaderMet", "LoaderStarted", *drawn, "LoaderEnded", "LoaderStarted", "BatchDrawn"]
    (met,) = (event for event in events if isinstance(event, LoaderMet))
    assert (met.batch_size, met.batches, met.shuffled, met.workers) == (4, 3, True, 0)


def test_workers_and_persistent_workers() -> None:
    with capture_events() as events:
        loader = DataLoader(DATA, 6, num_workers=1, persistent_workers=True)
        for _ in range(2):
            assert [batch[0].tolist() for batch in loader] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    once = ["LoaderStarted", "BatchDrawn", "BatchDrawn", "LoaderEnded"]
    assert kinds(events) == ["LoaderMet", *once, *once]


def test_a_stream_without_a_length() -> None:
    class Endless(IterableDataset[float]):
        def __iter__(self) -> Iterator[float]:
            return iter([1.0] * 5)

    with capture_events() as events:
        assert len(list(DataLoader(Endless(), 2))) == 3
    (met,) = (event for event in events if isinstance(event, LoaderMet))
    assert (met.batches, met.shuffled) == (None, False)


def test_two_loaders_over_one_dataset_share_its_number() -> None:
    with capture_events() as events:
        for loader in (
            DataLoader(DATA, 4),
            DataLoader(DATA, 6),
            *map(DataLoader, random_split(Subset(DATA, range(4)), [2, 2])),
        ):
            next(iter(loader))
    numbers = [event.dataset for event in events if isinstance(event, LoaderMet)]
    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == 3


def test_the_order_of_samples_is_the_same() -> None:
    def order() -> list[float]:
        torch.manual_seed(0)
        return [x for _ in range(2) for batch in DataLoader(DATA, 5, shuffle=True) for x in batch[0].tolist()]

    plain = order()
    with capture_events():
        assert order() == plain
