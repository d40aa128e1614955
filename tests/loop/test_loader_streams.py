"""Iterable data sets: one fixed order with any number of workers, split over ranks, resumed at any batch."""

import itertools
import logging
import random
from itertools import zip_longest

import datasets
import pytest
import torch
from datasets_of_tests import Counting, SplitsItself, Stateful
from torch.utils.data import ChainDataset, IterableDataset, get_worker_info

from truestep.errors import BadLoader, InexactResume, SamplesReadAgain
from truestep.loop.loading.iterable import refers_to
from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import mix


def flat(lists):
    return [each for one in lists for each in one]


def batches(loader, epoch=0, start=0):
    found = [str(batch) for batch in loader.epoch(epoch, start)]
    loader.close()
    return found


def numbers(loader, epoch=0, start=0):
    found = [batch.tolist() for batch in loader.epoch(epoch, start)]
    loader.close()
    return found


@pytest.mark.parametrize("length", [1, 7, 8, 23])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_the_same_with_any_number_of_workers(length, drop_last, workers):
    alone = Loader(Counting(length), batch_size=4, drop_last=drop_last)
    split = Loader(Counting(length), batch_size=4, drop_last=drop_last, num_workers=workers)
    whole = list(alone.epoch(2))
    assert len(whole) == (length // 4 if drop_last else -(-length // 4))
    assert [x for number, *_ in whole for x in number.tolist()] == list(range(length))[: len(whole) * 4]
    assert batches(split, 2) == [str(batch) for batch in whole]


class InRanks(Counting):
    def rank(self):
        return torch.distributed.get_rank()


@pytest.mark.parametrize(("dataset", "workers"), [(Counting(), 0), (Counting(), 2), (InRanks(), 0)])
def test_an_items_randomness_is_that_of_seed_epoch_and_its_number(dataset, workers):
    loader = Loader(dataset, batch_size=4, seed=3, num_workers=workers)
    found = {}
    for numbers, drawn, _ in loader.epoch(2):
        found.update(zip(numbers.tolist(), drawn.tolist(), strict=True))
    loader.close()
    assert found == {number: random.Random(mix(3, 2, number)).random() for number in range(23)}


def test_epochs_of_a_stream_augment_differently_and_repeat():
    loader = Loader(Counting(), batch_size=4)
    assert batches(loader, 0) != batches(loader, 1)
    assert batches(loader, 0) == batches(loader, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("start", [1, 4])
def test_a_stream_without_state_is_read_again_and_says_so(workers, start):
    whole = batches(Loader(Counting(), batch_size=4), 1)
    loader = Loader(Counting(), batch_size=4, num_workers=workers, name="lines")
    with pytest.warns(SamplesReadAgain, match=f"loader 'lines' read {4 * start} items again in .* to batch {start}:"):
        assert batches(loader, 1, start) == whole[start:]


@pytest.mark.parametrize("length", [1, 5, 8, 16, 23])
@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_share_every_global_batch_of_a_stream(length, workers):
    alone = numbers(Loader(Range(length), batch_size=8))
    parts = [
        numbers(Loader(Range(length), batch_size=4, num_workers=workers, rank=rank, world_size=2)) for rank in (0, 1)
    ]
    for whole, left, right in zip_longest(alone, *parts, fillvalue=[]):
        assert left + right == whole, "no item comes twice, so the last batch of a rank may be missing"


class Range(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        yield from range(self.length)


def test_a_stream_that_has_a_length_gives_the_loader_one():
    assert len(Loader(Range(23), batch_size=4)) == 6
    assert len(Loader(Range(23), batch_size=4, drop_last=True)) == 5
    assert len(Loader(Range(23), batch_size=4, world_size=2)) == 3


@pytest.mark.parametrize(("length", "expected"), [(7, [[0, 2], [1, 3], [4, 6], [5]]), (3, [[0, 2], [1]]), (1, [[0]])])
def test_a_stream_that_splits_itself_is_left_to_do_so(length, expected):
    assert numbers(Loader(SplitsItself(length), batch_size=2, num_workers=2)) == expected


class Unequal(SplitsItself):
    """Worker 0 has far more than worker 1."""

    def __iter__(self):
        info = get_worker_info()
        yield from (range(9) if info.id == 0 else range(100, 101))


@pytest.mark.parametrize("start", range(1, 6))
def test_a_stream_that_splits_itself_unequally_is_resumed_at_the_batch(start):
    whole = numbers(Loader(Unequal(), batch_size=2, num_workers=2))
    assert whole == [[0, 1], [100], [2, 3], [4, 5], [6, 7], [8]]
    with pytest.warns(SamplesReadAgain):
        assert numbers(Loader(Unequal(), batch_size=2, num_workers=2), start=start) == whole[start:]


def part_of_worker(items):
    info = get_worker_info()
    return itertools.islice(items, info.id, None, info.num_workers) if info else items


class ByFunction(Range):
    def __iter__(self):
        return iter(part_of_worker(range(self.length)))


class ByProperty(Range):
    @property
    def part(self):
        return [get_worker_info()]

    def __iter__(self):
        return iter(self.part)


class Inherits(SplitsItself):
    pass


class Holds(IterableDataset):
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(self.inner)


@pytest.mark.parametrize(
    ("dataset", "splits"),
    [
        (SplitsItself(), True),
        (Inherits(), True),
        (ByFunction(3), True),
        (ByProperty(3), True),
        (Holds(SplitsItself()), True),
        (ChainDataset([Range(2), SplitsItself()]), True),
        (Range(3), False),
        (Holds(Range(3)), False),
        (ChainDataset([Range(2), Range(3)]), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_code_that_splits_over_workers_is_found(dataset, splits):
    assert refers_to(dataset, "get_worker_info") is splits


def test_an_endless_stream_is_left_in_the_middle_with_workers_that_stay():
    loader = Loader(Counting(10**12), batch_size=4, num_workers=2)
    for epoch in range(3):
        for place, (number, *_) in enumerate(loader.epoch(epoch)):
            assert number.tolist() == list(range(4 * place, 4 * place + 4))
            if place == 5:
                break
    loader.close()


def test_two_epochs_of_a_stream_side_by_side_are_an_error():
    loader = Loader(Counting(), batch_size=4)
    first, second = loader.epoch(0), loader.epoch(1)
    next(first)
    next(second)
    with pytest.raises(BadLoader, match="continued after its next one"):
        next(first)


@pytest.mark.parametrize("ahead", [0, 1, 2], ids=lambda ahead: f"{ahead} drawn ahead")
@pytest.mark.parametrize("position", [1, 3])
def test_a_stream_that_keeps_its_place_is_resumed_there(ahead, position):
    whole = batches(Loader(Stateful(), batch_size=4), 2)
    stopped = Loader(Stateful(), batch_size=4)
    drawn = stopped.epoch(2)
    for _ in range(position + ahead):
        next(drawn)
    state = stopped.state_dict(position)
    assert state == {"epoch": 2, "position": position, "dataset": {"place": 4 * position}}
    dataset = Stateful()
    resumed = Loader(dataset, batch_size=4)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert batches(resumed, 2, position) == whole[position:]
    assert dataset.made == 0, "the resumed epoch is read from a copy, and nothing is read again"
    assert batches(resumed, 2) == whole, "and the next one starts at the beginning"


def test_a_state_of_another_place_is_not_used():
    loader = Loader(Stateful(), batch_size=4)
    whole = batches(loader, 1)
    loader.load_state_dict({"epoch": 1, "position": 2, "dataset": {"place": 8}})
    with pytest.warns(SamplesReadAgain, match="read 12 items again"):
        assert batches(loader, 1, 3) == whole[3:]


def test_with_workers_a_state_is_not_kept_and_the_stream_is_read_again():
    whole = batches(Loader(Stateful(), batch_size=4), 1)
    loader = Loader(Stateful(), batch_size=4, num_workers=2)
    drawn = loader.epoch(1)
    for _ in range(3):
        next(drawn)
    state = loader.state_dict()
    assert state == {"epoch": 1, "position": 3}
    loader.load_state_dict(state)
    with pytest.warns(SamplesReadAgain):
        assert batches(loader, 1, 3) == whole[3:]


class OwnStream(IterableDataset):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(1)

    def __iter__(self):
        while True:
            yield torch.rand((), generator=self.generator)


class Failing(IterableDataset):
    def __iter__(self):
        yield from range(5)
        raise OSError("connection lost")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_stream_names_the_item(workers):
    loader = Loader(Failing(), batch_size=2, num_workers=workers)
    with pytest.raises(OSError, match="connection lost") as caught:
        list(loader.epoch(1))
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "while the loader read item 5 of the data set, epoch 1" in said
    loader.close()


def streamed(shards=4, rows=24):
    return datasets.Dataset.from_dict({"a": list(range(rows))}).to_iterable_dataset(num_shards=shards)


def rows(loader, epoch=0, start=0):
    found = [batch["a"].tolist() for batch in loader.epoch(epoch, start)]
    loader.close()
    return found


def test_hugging_faces_stream_splits_itself():
    alone = rows(Loader(streamed(), batch_size=4))
    split = rows(Loader(streamed(), batch_size=4, num_workers=2))
    assert sorted(flat(split)) == flat(alone) == list(range(24))
    assert split == rows(Loader(streamed(), batch_size=4, num_workers=2))


@pytest.mark.filterwarnings("ignore:.*Too many dataloader workers")
def test_hugging_faces_stream_with_fewer_shards_than_workers(caplog):
    caplog.set_level(logging.ERROR, logger="datasets")
    assert sorted(flat(rows(Loader(streamed(shards=1), batch_size=4, num_workers=2)))) == list(range(24))


@pytest.mark.parametrize("shards", [1, 4])
def test_hugging_faces_stream_is_split_over_ranks(shards):
    parts = [rows(Loader(streamed(shards), batch_size=4, rank=rank, world_size=2)) for rank in (0, 1)]
    assert sorted(flat(parts[0] + parts[1])) == list(range(24))
    assert list(map(len, parts)) == [3, 3]


def test_hugging_faces_stream_is_resumed_by_its_own_state():
    whole = rows(Loader(streamed(), batch_size=5), 2)
    stopped = Loader(streamed(), batch_size=5)
    drawn = stopped.epoch(2)
    next(drawn), next(drawn)
    state = stopped.state_dict(1)
    assert state["dataset"]
    resumed = Loader(streamed(), batch_size=5)
    resumed.load_state_dict(state)
    assert rows(resumed, 2, 1) == whole[1:]
    assert rows(resumed, 2) == whole


def test_hugging_faces_shuffle_buffer_is_not_in_its_state_so_it_is_read_again():
    def shuffled():
        return Loader(streamed().shuffle(seed=3, buffer_size=10), batch_size=5)

    whole = rows(shuffled(), 1)
    assert whole != rows(shuffled(), 2)
    stopped = shuffled()
    drawn = stopped.epoch(1)
    next(drawn), next(drawn)
    assert "dataset" not in stopped.state_dict()
    with pytest.warns(SamplesReadAgain):
        assert rows(shuffled(), 1, 2) == whole[2:]


def test_a_stream_with_a_generator_of_its_own_is_reported():
    with pytest.warns(InexactResume):
        assert not Loader(OwnStream(), batch_size=4).check_exact()
