"""Which steps are read closely."""

from itertools import cycle, islice

import pytest
import torch

from truestep.probes.context.sampling import Sampling


def _sampled(rounds: str, steps: int) -> dict[str, list[int]]:
    """Return the sampled steps by optimizer, of optimizers that step in turn."""
    sampling, sampled = Sampling(torch), {name: [] for name in rounds}
    for step, name in enumerate(islice(cycle(rounds), steps)):
        if sampling.on:
            sampled[name].append(step)
        sampling.advance(ord(name))
    return sampled


def test_one_optimizer():
    assert _sampled("a", 3000) == {"a": [0, 1, 2, 3, 10, 20, 50, 51, 100, 200, 201, 500, 1009, 2018]}


@pytest.mark.parametrize("rounds", ["ab", "abc", "aaab", "aaaaab", "aaaaaaaaaaab", "aabb"])
def test_every_optimizer_has_its_early_steps_and_later_ones(rounds):
    for name, steps in _sampled(rounds, 40_000).items():
        assert len([step for step in steps if step < 8 * len(rounds)]) >= 4, name
        assert len([step for step in steps if step > 500]) >= 2, name


def test_each_step_of_a_round_has_its_turn():
    sampling = Sampling(torch)
    for length in range(2, 9):
        assert {step % length for step in range(20_000) if sampling.is_sampled(step)} == set(range(length))


def test_optimizers_that_are_built_for_a_few_steps_are_not_followed():
    sampling = Sampling(torch)
    sampled = 0
    for task in range(200):
        for _ in range(5):
            sampled += sampling.on
            sampling.advance(task)
    assert sampled < 100


def test_close_reading_within_a_check_is_counted_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("truestep.probes.context.sampling.time.thread_time", lambda: now[0])
    sampling = Sampling(torch)
    with sampling.checks:
        now[0] += 0.25
        with sampling.timed(None):
            now[0] += 0.5
        assert sampling.checks.total_s() == 0.25
    assert (sampling.cost_s, sampling.checks.total_s()) == (0.5, 0.25)
