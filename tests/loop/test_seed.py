"""One seed for all generators, states that load safely, and a hash that spreads."""

import io
import os
import random

import numpy as np
import pytest
import torch

from truestep.loop.rng.deterministic import CUBLAS, deterministic
from truestep.loop.rng.seed import borrowed, mix, mix_each, rng_state, seed_everything, set_rng_state


def draw():
    return (
        random.random(),
        random.gauss(0, 1),
        float(np.random.rand()),
        float(np.random.randn()),
        float(torch.rand(())),
        float(torch.randn(())),
    )


def test_one_seed_repeats_all_generators():
    seed_everything(7)
    first = draw()
    seed_everything(7)
    assert draw() == first
    seed_everything(8)
    assert all(a != b for a, b in zip(draw(), first, strict=True))


@pytest.mark.parametrize("seed", [0, -1, 2**32, 2**64 - 1])
def test_any_integer_is_a_seed(seed):
    seed_everything(seed)
    first = draw()
    seed_everything(seed)
    assert draw() == first


@pytest.mark.parametrize("drawn_before", [0, 1], ids=["fresh", "half of a pair of normals is kept"])
def test_a_state_that_went_through_a_file_goes_on_exactly(drawn_before):
    seed_everything(3)
    for _ in range(drawn_before):
        draw()
    file = io.BytesIO()
    torch.save(rng_state(), file)
    expected = [draw() for _ in range(700)]
    seed_everything(99)
    file.seek(0)
    set_rng_state(torch.load(file, weights_only=True))
    assert [draw() for _ in range(700)] == expected


@pytest.mark.parametrize("kind", ["PCG64", "Philox", "SFC64"])
def test_numpys_other_global_generators_are_kept_too(kind):
    usual = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(getattr(np.random, kind)(5))
        file = io.BytesIO()
        torch.save(rng_state(), file)
        expected = np.random.rand(5).tolist()
        file.seek(0)
        set_rng_state(torch.load(file, weights_only=True))
        assert np.random.rand(5).tolist() == expected
    finally:
        np.random.set_bit_generator(usual)


def test_what_a_state_does_not_name_stays_as_it_is():
    state = rng_state()
    del state["numpy"]
    np.random.rand(1000)
    expected = np.random.get_state()[1].tolist()
    set_rng_state(state)
    assert np.random.get_state()[1].tolist() == expected


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_states_of_devices_that_are_not_here_are_left_out():
    state = rng_state()
    expected = draw()
    set_rng_state({**state, "cuda": [torch.zeros(16, dtype=torch.uint8)]})
    assert draw() == expected


def test_half_of_the_bits_change_with_any_bit_of_any_number():
    for place in range(3):
        for bit in range(0, 64, 7):
            changed = 0
            for trial in range(200):
                numbers = [trial, 3 * trial + 1, trial * trial]
                other = list(numbers)
                other[place] ^= 1 << bit
                changed += (mix(*numbers) ^ mix(*other)).bit_count()
            assert 14.5 < changed / 200 < 17.5


def test_neighbouring_samples_and_epochs_share_no_number():
    numbers = {mix(42, epoch, index) for epoch in range(20) for index in range(1000)}
    assert len(numbers) >= 19_998  # 20000 of 2**32: a pair is expected in one of twenty such draws
    assert max(numbers) < 2**32


def test_the_fast_path_is_the_hash():
    assert mix_each(42, 3, last=range(50)) == [mix(42, 3, index) for index in range(50)]
    assert mix(-1) == mix(2**64 - 1)


def test_borrowed_generators_come_back_as_they_were_also_after_an_error():
    seed_everything(1)
    draw()
    state, seed = rng_state(), torch.initial_seed()
    expected = draw()
    set_rng_state(state)
    with pytest.raises(KeyError):
        with borrowed() as reseed:
            reseed(5)
            first = draw()
            reseed(5)
            assert draw() == first
            raise KeyError
    assert torch.initial_seed() == seed
    assert draw() == expected


def switches():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        os.environ.get(CUBLAS),
    )


@pytest.mark.parametrize("workspace", [None, ":16:8", ":0:0"])
def test_deterministic_switches_come_back_exactly(monkeypatch, workspace):
    monkeypatch.delenv(CUBLAS, raising=False)
    if workspace:
        monkeypatch.setenv(CUBLAS, workspace)
    with deterministic(False):
        torch.backends.cudnn.benchmark = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        before = switches()
        with deterministic() as switched:
            assert switches() == (True, False, True, False, ":16:8" if workspace == ":16:8" else ":4096:8")
        assert switches() == before
        switched.undo()
        assert switches() == before
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark


def test_an_operation_without_a_deterministic_algorithm_raises():
    with deterministic():
        with pytest.raises(RuntimeError, match="deterministic"):
            torch.nn.functional.max_unpool2d(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.long), 1)
