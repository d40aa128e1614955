"""Data sets in in_memory: read batch by batch, without workers, where the model is if they fit."""

import random

import pytest
import torch
from datasets_of_tests import Fields, NoisyFields
from torch.utils.data import DataLoader, Subset, TensorDataset

from truestep.loop.loading import in_memory
from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import rng_state, set_rng_state

X, Y = torch.randn(23, 5), torch.arange(23)


def same(ours, theirs):
    return all(
        torch.equal(a, b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("dataset", [TensorDataset(X, Y), Fields(X, Y), Subset(TensorDataset(X, Y), range(23))])
def test_batches_are_those_of_the_data_loader(dataset):
    assert same(Loader(dataset, batch_size=4), DataLoader(TensorDataset(X, Y), batch_size=4))


def test_a_subset_of_a_subset_is_read_by_its_own_indices():
    part = Subset(Subset(TensorDataset(X, Y), [9, 7, 5, 3]), [3, 0, 1])
    assert [y.tolist() for _, y in Loader(part, batch_size=2)] == [[3, 9], [7]]


def test_a_batch_is_a_copy_of_the_data():
    data = TensorDataset(X.clone())
    for (x,) in Loader(data, batch_size=8):
        x.zero_()
    assert torch.equal(data.tensors[0], X)


def test_workers_are_not_started_for_data_in_memory():
    loader = Loader(Fields(Y), batch_size=4, num_workers=2)
    assert [y.tolist() for (y,) in loader] == [y.tolist() for (y,) in Loader(Fields(Y), batch_size=4)]


def test_a_collate_fn_reads_sample_by_sample():
    loader = Loader(TensorDataset(Y), batch_size=3, collate_fn=lambda samples: [int(y) for (y,) in samples])
    assert next(iter(loader)) == [0, 1, 2]


class Squares(TensorDataset):
    def __getitem__(self, index):
        return super().__getitem__(index)[0] ** 2


def test_a_tensor_data_set_with_code_of_its_own_is_read_by_it():
    assert next(iter(Loader(Squares(Y), batch_size=3))).tolist() == [0, 1, 4]


def noise(x, *rest):
    return (x + torch.rand(len(x)), *rest)


@pytest.mark.parametrize(
    ("dataset", "transform"),
    [(TensorDataset(Y), noise), (NoisyFields(Y), None), (Subset(NoisyFields(Y), range(23)), None)],
    ids=["transform of the loader", "draws in its batch", "subset"],
)
def test_augmentation_is_by_batch_and_leaves_the_generators_alone(dataset, transform):
    loader = Loader(dataset, batch_size=4, shuffle=True, transform=transform)
    state = rng_state()
    whole = [[field.tolist() for field in batch] for batch in loader.epoch(1)]
    expected = torch.rand(3).tolist(), random.random()
    set_rng_state(state)
    assert (torch.rand(3).tolist(), random.random()) == expected
    random.random(), torch.rand(())
    assert [[field.tolist() for field in batch] for batch in loader.epoch(1, start=2)] == whole[2:]
    assert [[field.tolist() for field in batch] for batch in loader.epoch(2)] != whole
    assert len({str(batch) for batch in whole}) == len(whole)


CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize(("free", "moves"), [(2 * X.nbytes, [CUDA]), (2 * X.nbytes - 1, [])], ids=["fits", "does not"])
def test_data_move_to_the_device_if_they_take_at_most_half_of_its_free_memory(monkeypatch, free, moves):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 10 * free))
    dataset = Fields(X)
    in_memory.moved(dataset, CUDA)
    assert dataset.moves == moves


def test_data_that_know_their_size_are_asked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (99, 99))
    dataset = Fields(X)
    dataset.nbytes = 49
    in_memory.moved(dataset, CUDA)
    assert dataset.moves == [CUDA]


def test_a_subset_takes_the_room_of_the_whole():
    assert in_memory.bytes_of(in_memory.in_memory(Subset(TensorDataset(X), [1]))) == X.nbytes


def test_data_stay_where_they_are_for_other_devices():
    dataset = Fields(X)
    in_memory.moved(dataset, torch.device("cpu"))
    in_memory.moved(dataset, torch.device("mps"))
    assert dataset.moves == []
