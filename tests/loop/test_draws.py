"""Seeds that no sample asks for are left out, and no sample notices."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from truestep.loop.loading.draws import LOOKED_AT, SEEDS
from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import mix, rng_state, set_rng_state

DRAW = {"python": random.random, "torch": lambda: float(torch.rand(())), "numpy": lambda: float(np.random.rand())}


class Late(Dataset):
    """Draws from some generators, in some samples only."""

    def __init__(self, draws, length=400):
        self.draws, self.length, self.read = draws, length, []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.read.append(index)
        return index, [DRAW[name]() for name, every in self.draws.items() if index % every == every - 1]


def everything(items):
    return items


def drawn(dataset, **arguments):
    loader = Loader(dataset, batch_size=32, collate_fn=everything, **arguments)
    found = {index: values for batch in loader.epoch(1) for index, values in batch}
    loader.close()
    return found


@pytest.fixture
def generators():
    state = rng_state()
    yield
    set_rng_state(state)


@pytest.mark.parametrize(
    "draws",
    [
        {},
        {"python": 1},
        {"torch": 1},
        {"numpy": 1},
        {"python": 300},
        {"torch": 2, "numpy": 70},
        dict.fromkeys(DRAW, 150),
    ],
    ids=str,
)
@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_has_what_its_own_seed_gives_whenever_the_first_one_drew(draws, workers, generators):
    found = drawn(Late(draws), shuffle=True, num_workers=workers, seed=5)
    twin = Late(draws)
    assert len(found) == 400
    for index, values in found.items():
        for seed in SEEDS.values():
            seed(mix(5, 1, index))
        assert values == twin[index][1]


@pytest.mark.parametrize(
    ("draws", "again"), [({}, 0), ({"python": 1}, 0), ({"torch": 100}, 0), ({"python": 50, "numpy": 200}, 2)]
)
def test_a_batch_is_read_twice_only_where_a_generator_is_first_drawn_from(draws, again):
    dataset = Late(draws)
    drawn(dataset)
    assert len(dataset.read) == 400 + 32 * again


def test_generators_that_nothing_draws_from_are_not_seeded_for_each_sample(monkeypatch):
    counts = dict.fromkeys(SEEDS, 0)

    def counted(name, seed):
        def count(number):
            counts[name] += 1
            seed(number)

        return count

    for name, seed in list(SEEDS.items()):
        monkeypatch.setitem(SEEDS, name, counted(name, seed))
    drawn(Late({"python": 1}))
    rest = 13 - LOOKED_AT // 32
    assert counts == {"python": 400 + rest, "numpy": 32 + rest, "torch": 400 + rest}


class Initial(Late):
    def __getitem__(self, index):
        return index, [torch.initial_seed()]


def test_a_sample_may_read_the_seed_instead_of_drawing():
    assert drawn(Initial({}), seed=5) == {index: [mix(5, 1, index)] for index in range(400)}


def test_the_global_generators_stay_as_they_are_where_a_batch_is_read_twice(generators):
    state = rng_state()
    drawn(Late({"python": 50, "torch": 90, "numpy": 200}))
    after = [draw() for draw in DRAW.values()]
    set_rng_state(state)
    assert [draw() for draw in DRAW.values()] == after
