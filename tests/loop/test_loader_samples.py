"""Map-style data sets: randomness by (seed, epoch, index), workers that come and go, errors with their place."""

import io
import multiprocessing
import os
import random
import sys
import types

import datasets
import numpy as np
import pytest
import torch
from datasets_of_tests import Counting, Noisy, NoisyBatches, OwnGenerator
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

from truestep.errors import BadLoader, InexactResume
from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import mix, rng_state, set_rng_state

datasets.disable_progress_bars()


def samples(loader, epoch=0, start=0):
    """Index and draws of every sample."""
    return {
        int(sample[0]): tuple(map(float, sample[1:]))
        for batch in loader.epoch(epoch, start)
        for sample in zip(*batch, strict=True)
    }


@pytest.fixture
def generators():
    state = rng_state()
    yield
    set_rng_state(state)


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_samples_randomness_is_that_of_seed_epoch_and_index(epoch, generators):
    drawn = samples(Loader(Noisy(), batch_size=4, shuffle=True, seed=3), epoch)
    for index in range(23):
        number = mix(3, epoch, index)
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        assert drawn[index] == (random.random(), np.random.rand(), float(torch.rand(())))


@pytest.mark.parametrize(
    "changed",
    [{"num_workers": 2}, {"num_workers": 2, "shuffle": False}, {"batch_size": 7}, {"rank": 1, "world_size": 2}],
    ids=str,
)
@pytest.mark.parametrize("dataset", [Noisy(), Subset(Noisy(40), range(23))], ids=["map", "subset"])
def test_augmentation_depends_neither_on_workers_nor_on_order_nor_on_ranks(dataset, changed):
    plain = samples(Loader(dataset, batch_size=4, shuffle=True), 1)
    loader = Loader(dataset, **{"batch_size": 4, "shuffle": True, **changed})
    drawn = samples(loader, 1)
    assert drawn.items() <= plain.items()
    assert drawn
    loader.close()


@pytest.mark.parametrize("dataset", [Noisy(), NoisyBatches()], ids=["samples", "batches"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_epoch_has_the_same_samples(dataset, workers):
    whole = samples(Loader(dataset, batch_size=4, shuffle=True), 3)
    loader = Loader(dataset, batch_size=4, shuffle=True, num_workers=workers)
    rest = samples(loader, 3, start=2)
    assert len(rest) == 15
    assert rest.items() <= whole.items()
    loader.close()


def test_epochs_and_seeds_augment_differently():
    drawn = [samples(Loader(Noisy(), batch_size=4, seed=seed), epoch)[0] for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(drawn)) == 4


def noisy_collate(items):
    return default_collate(items)[0], torch.rand(len(items))


def test_a_collate_fn_that_draws_is_seeded_by_batch():
    def batches(start=0, **workers):
        loader = Loader(Noisy(), batch_size=4, collate_fn=noisy_collate, **workers)
        return [(x.tolist(), noise.tolist()) for x, noise in loader.epoch(1, start)]

    whole = batches()
    for position, (x, noise) in enumerate(whole):
        generator = torch.Generator().manual_seed(mix(0, 1, position, 1))
        assert noise == torch.rand(len(x), generator=generator).tolist()
    assert batches(num_workers=2, persistent_workers=False) == whole
    assert batches(start=4) == whole[4:]


def jitter(x, *rest):
    return (x + torch.rand(len(x)), *rest)


def test_a_transform_gets_the_batchs_fields_and_is_seeded_by_batch():
    def batches(start=0, **workers):
        loader = Loader(Noisy(), batch_size=4, transform=jitter, **workers)
        return [x.tolist() for x, *_ in loader.epoch(1, start)]

    whole = batches()
    assert [[int(value) for value in batch] for batch in whole[:2]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert batches(num_workers=2, persistent_workers=False) == whole
    assert batches(start=4) == whole[4:]


def test_a_transform_gets_a_batch_that_is_no_tuple_whole():
    loader = Loader([{"x": 1}, {"x": 2}], batch_size=2, transform=lambda batch: batch["x"] * 10)
    assert [batch.tolist() for batch in loader] == [[10, 20]]


def padded(items):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(item) for item in items], batch_first=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_sequences_are_padded_by_the_users_collate_fn(workers):
    lines = [[1], [2, 3], [4, 5, 6], [7]]
    loader = Loader(lines, batch_size=2, collate_fn=padded, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[[1, 0], [2, 3]], [[4, 5, 6], [7, 0, 0]]]
    loader.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_hugging_face_data_set_gives_what_the_data_loader_gives(workers):
    table = datasets.Dataset.from_dict({"text": [f"line {i}" for i in range(10)], "label": list(range(10))})
    loader = Loader(table, batch_size=4, num_workers=workers)
    for ours, theirs in zip(loader, DataLoader(table, batch_size=4), strict=True):
        assert ours["text"] == theirs["text"]
        assert ours["label"].tolist() == theirs["label"].tolist()
    loader.close()


def test_hugging_faces_own_transform_is_seeded_by_batch():
    def draw(batch):
        return {"label": batch["label"], "noise": [random.random() for _ in batch["label"]]}

    table = datasets.Dataset.from_dict({"label": list(range(10))}).with_transform(draw)
    state = random.getstate()
    loaders = [Loader(table, batch_size=4, shuffle=True), Loader(table, batch_size=4, shuffle=True, num_workers=2)]
    drawn = [[batch["noise"].tolist() for batch in loader.epoch(2)] for loader in loaders]
    assert drawn[0] == drawn[1]
    assert random.getstate() == state
    loaders[1].close()


class Told(Dataset):
    epoch = None

    def __len__(self):
        return 8

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        return self.epoch


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_with_set_epoch_gets_the_epoch_also_in_workers_that_stay(workers):
    loader = Loader(Told(), batch_size=4, num_workers=workers)
    assert [[batch.tolist() for batch in loader.epoch(epoch)] for epoch in (0, 5)] == [[[0] * 4] * 2, [[5] * 4] * 2]
    loader.close()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Pids(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index, os.getpid()


@pytest.mark.parametrize("persistent", [True, False])
def test_an_epoch_that_is_left_in_the_middle_leaves_no_trace(persistent):
    loader = Loader(Pids(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=persistent)
    whole = [x.tolist() for x, _ in Loader(Pids(), batch_size=4, shuffle=True).epoch(1)]
    pids = set()
    for _, own in loader.epoch(0):
        pids.update(own.tolist())
        break
    batches = []
    for x, own in loader.epoch(1):
        batches.append(x.tolist())
        pids.update(own.tolist())
    assert batches == whole
    assert len(pids) == (2 if persistent else 3)
    loader.close()
    assert os.getpid() not in pids
    assert not [pid for pid in pids if alive(pid)]


def test_an_epoch_that_goes_on_after_the_next_began_is_an_error():
    loader = Loader(Pids(), batch_size=4, num_workers=1)
    first, second = loader.epoch(0), loader.epoch(1)
    next(first)
    next(second)
    with pytest.raises(BadLoader, match="continued after its next one had started"):
        next(first)
    assert len(list(second)) == 15
    loader.close()


def test_without_workers_two_epochs_can_be_read_side_by_side():
    loader = Loader(Noisy(), batch_size=4, shuffle=True)
    pairs = list(zip(loader.epoch(0), loader.epoch(1), strict=True))
    assert [str(a) for a, _ in pairs] == [str(batch) for batch in loader.epoch(0)]
    assert [str(b) for _, b in pairs] == [str(batch) for batch in loader.epoch(1)]


class Broken(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 7:
            raise self.error
        return index


class BrokenBatches(Broken):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize(("workers", "persistent"), [(0, True), (1, True), (1, False)])
@pytest.mark.parametrize(
    ("dataset", "where"), [(Broken, "index 7"), (BrokenBatches, "indices 4, 5, 6, 7")], ids=["samples", "batches"]
)
def test_the_users_error_comes_through_with_its_place_in_the_data(dataset, where, workers, persistent):
    error = ValueError("no such file")
    loader = Loader(dataset(error), batch_size=4, num_workers=workers, persistent_workers=persistent)
    with pytest.raises(ValueError, match="no such file") as caught:
        list(loader.epoch(3))
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert f"while the loader read {where} of the data set, epoch 3" in said
    if workers:
        assert "in __getitem__" in said, "the worker's traceback"
        assert next(loader.epoch(0)).tolist() == [0, 1, 2, 3], "the workers go on"
    loader.close()
    left = multiprocessing.active_children()
    assert not left, "not even while the traceback is kept"


@pytest.mark.parametrize("dataset", [Broken, BrokenBatches])
def test_stop_iteration_in_a_data_set_does_not_end_the_epoch_quietly(dataset):
    with pytest.raises(RuntimeError, match="StopIteration while the loader read"):
        list(Loader(dataset(StopIteration()), batch_size=4))


@pytest.mark.program
def test_spawned_workers_give_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))  # that of another test has no spec
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    loader = Loader(Noisy(), batch_size=12, shuffle=True, num_workers=1, multiprocessing_context="spawn")
    assert samples(loader) == samples(Loader(Noisy(), batch_size=12, shuffle=True))
    loader.close()


def test_the_state_is_the_position_and_loads_safely():
    loader = Loader(Noisy(), batch_size=4)
    batches = loader.epoch(2)
    for _ in range(3):
        next(batches)
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == {"epoch": 2, "position": 3}
    assert loader.state_dict(1) == {"epoch": 2, "position": 1}


def test_a_generator_of_the_data_sets_own_is_reported():
    with pytest.warns(InexactResume, match="differ when drawn twice with the same seed"):
        assert not Loader(OwnGenerator(), batch_size=4).check_exact()


def test_looking_for_inexact_samples_leaves_the_data_set_and_the_generators_alone():
    dataset = OwnGenerator()
    ours, state = dataset.generator.bit_generator.state, random.getstate()
    with pytest.warns(InexactResume):
        Loader(dataset, batch_size=4).check_exact()
    assert dataset.generator.bit_generator.state == ours
    assert random.getstate() == state


class Uncopied(OwnGenerator):
    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")


class Large(Noisy):
    """Images and a table of names: too large to be copied for a look."""

    def __init__(self):
        super().__init__()
        self.images = torch.zeros(100, 3, 8, 8)
        self.names = [[f"{number}.png"] for number in range(50_000)]

    def __getitem__(self, index):
        return self.images[index].data_ptr(), id(self.names[index]), *super().__getitem__(index)


@pytest.mark.parametrize(
    "dataset",
    [Noisy(), NoisyBatches(), Uncopied(), Large(), datasets.Dataset.from_dict({"a": [1, 2]}), Counting()],
    ids=lambda dataset: type(dataset).__name__,
)
def test_no_warning_where_samples_are_exact_or_cannot_be_looked_at(dataset):
    assert Loader(dataset, batch_size=2).check_exact()
