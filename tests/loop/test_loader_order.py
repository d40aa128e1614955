"""Which samples come in which batch: against a twin written by hand, on every rank, from every position."""

import random
import zlib

import numpy as np
import pytest
import torch
from datasets_of_tests import Counting, Noisy, NoisyBatches
from torch.utils.data import TensorDataset

from truestep.errors import BadLoader
from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import mix


def indices(loader, epoch=0, start=0):
    return [batch[0].tolist() for batch in loader.epoch(epoch, start)]


def flat(lists):
    return [each for one in lists for each in one]


def in_memory(length=23):
    return TensorDataset(torch.arange(length))


KINDS = pytest.mark.parametrize("dataset", [Noisy(), NoisyBatches(), in_memory()], ids=["map", "batches", "memory"])


@KINDS
@pytest.mark.parametrize("epoch", [0, 3])
def test_the_order_is_a_permutation_by_seed_name_and_epoch(dataset, epoch):
    generator = torch.Generator().manual_seed(mix(9, zlib.crc32(b"fit"), epoch))
    twin = torch.randperm(23, generator=generator).tolist()
    loader = Loader(dataset, batch_size=4, shuffle=True, seed=9, name="fit")
    assert indices(loader, epoch) == [twin[at : at + 4] for at in range(0, 23, 4)]
    assert sorted(flat(indices(loader, epoch))) == list(range(23))


@KINDS
def test_epochs_seeds_and_names_have_orders_of_their_own(dataset):
    def make(**changed):
        return Loader(dataset, batch_size=23, **{"shuffle": True, "seed": 1, "name": "a", **changed})

    orders = [indices(make()), indices(make(), 1), indices(make(seed=2)), indices(make(name="b"))]
    assert len({str(order) for order in orders}) == 4
    assert indices(make()) == orders[0]


@KINDS
def test_a_plain_for_gives_one_epoch_after_another(dataset):
    loader = Loader(dataset, batch_size=5, shuffle=True)
    walked = [[batch[0].tolist() for batch in loader] for _ in range(3)]
    assert walked == [indices(loader, epoch) for epoch in range(3)]
    assert walked[0] != walked[1] != walked[2]


@KINDS
def test_without_shuffle_the_order_is_that_of_the_data(dataset):
    loader = Loader(dataset, batch_size=5)
    assert indices(loader, 2) == [list(range(at, min(at + 5, 23))) for at in range(0, 23, 5)]
    assert [batch[0].tolist() for batch in loader] == indices(loader)


@KINDS
@pytest.mark.parametrize(("drop_last", "batches"), [(False, 6), (True, 5)])
def test_the_length_is_the_number_of_batches(dataset, drop_last, batches):
    loader = Loader(dataset, batch_size=4, drop_last=drop_last)
    assert len(loader) == batches == len(indices(loader))


@KINDS
@pytest.mark.parametrize("start", [0, 1, 4, 6])
def test_an_epoch_goes_on_from_any_position(dataset, start):
    loader = Loader(dataset, batch_size=4, shuffle=True)
    whole = [tuple(map(str, batch)) for batch in loader.epoch(5)]
    assert [tuple(map(str, batch)) for batch in loader.epoch(5, start)] == whole[start:]


@KINDS
def test_a_start_beyond_the_epoch_is_an_error(dataset):
    with pytest.raises(BadLoader, match=r"start of loader .* must be at least 0 and at most \d+, .*, got 7"):
        Loader(dataset, batch_size=4).epoch(0, 7)
    with pytest.raises(BadLoader, match=r"start of loader .* must be at least 0, got -1"):
        Loader(dataset, batch_size=4).epoch(0, -1)


@pytest.mark.parametrize("length", range(1, 26))
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_share_every_global_batch(length, world_size, drop_last):
    size = 12 // world_size
    if drop_last and length < 12:
        return
    loaders = [
        Loader(in_memory(length), batch_size=size, shuffle=True, drop_last=drop_last, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    parts = [indices(loader) for loader in loaders]
    assert {len(part) for part in parts} == {len(loaders[0])}
    alone = indices(Loader(in_memory(length), batch_size=12, shuffle=True, drop_last=drop_last))
    for number, whole in enumerate(alone):
        weights = [loader.weight(number) for loader in loaders]
        given = [part[number] for part, weight in zip(parts, weights, strict=True) if weight]
        assert flat(given) == whole, "the global batch does not depend on the world size"
        shares = [len(own) * world_size / len(whole) for own in given]
        assert [weight for weight in weights if weight] == pytest.approx(shares)
        repeated = [part[number] for part, weight in zip(parts, weights, strict=True) if not weight]
        assert all(own == given[0] for own in repeated), "a rank without samples repeats those of rank 0"


@pytest.mark.parametrize("length", range(1, 26))
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("stream", [False, True], ids=["map", "stream"])
def test_without_even_each_sample_is_given_once(length, world_size, stream):
    dataset = Counting(length) if stream else in_memory(length)
    loaders = [
        Loader(dataset, batch_size=4, even=False, rank=rank, world_size=world_size) for rank in range(world_size)
    ]
    parts = [indices(loader) for loader in loaders]
    assert sorted(flat(flat(parts))) == list(range(length))
    if not stream:
        assert [len(part) for part in parts] == list(map(len, loaders))
        even = [Loader(dataset, batch_size=4, rank=rank, world_size=world_size) for rank in range(world_size)]
        own = [[batch[0].tolist() for batch in loader.own_batches()] for loader in even]
        assert sorted(flat(flat(own))) == list(range(length))


def global_states():
    return (
        random.getstate(),
        torch.get_rng_state().tolist(),
        torch.initial_seed(),
        np.random.get_state()[1].tolist(),
        np.random.get_state()[2:],
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Noisy(), NoisyBatches(), in_memory(), Counting()], ids=lambda d: type(d).__name__)
def test_no_global_generator_is_touched(dataset, workers):
    random.seed(4)
    torch.manual_seed(5)
    np.random.seed(6)
    random.gauss(0, 1), torch.randn(()), np.random.randn()
    before = global_states()
    loader = Loader(
        dataset,
        batch_size=4,
        shuffle=not isinstance(dataset, Counting),
        num_workers=workers,
        transform=lambda x, *rest: (x + torch.rand(len(x)), *rest),
    )
    for epoch in range(2):
        for _ in loader.epoch(epoch):
            assert global_states() == before
    assert global_states() == before
    loader.close()


def test_a_stream_of_unknown_length_has_none():
    with pytest.raises(TypeError):
        len(Loader(Counting(), batch_size=4))


class OnlyIndex:
    def __getitem__(self, index):
        return index


@pytest.mark.parametrize(
    ("dataset", "arguments", "message"),
    [
        (in_memory(), {"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        (in_memory(), {"batch_size": True}, "batch_size must be a positive integer, got True"),
        (in_memory(), {"batch_size": 4, "num_workers": -1}, "num_workers must be an integer of at least 0, got -1"),
        (
            in_memory(),
            {"batch_size": 4, "rank": 2, "world_size": 2},
            "rank must be from 0 to 1 with 2 processes, got 2",
        ),
        (in_memory(3), {"batch_size": 4, "drop_last": True}, "has no batch"),
        ([], {"batch_size": 4}, "has no batch"),
        (Counting(), {"batch_size": 4, "shuffle": True}, "shuffle=True with an iterable data set"),
        (iter([1, 2]), {"batch_size": 4}, "got an iterator"),
        ({"train": in_memory()}, {"batch_size": 4}, r"got a dict of data sets \(train\)"),
        (OnlyIndex(), {"batch_size": 4}, "is not a data set"),
        (3, {"batch_size": 4}, "got a int, which is not a data set"),
    ],
)
def test_what_cannot_be_loaded_is_an_error_that_teaches(dataset, arguments, message):
    with pytest.raises(BadLoader, match=message) as caught:
        Loader(dataset, **arguments)
    assert "must be" in message or caught.value.expected.startswith("expected")
    assert caught.value.remedy
