"""How long a run waited for a loader, told from times that are given: no test here looks at a clock."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import LoaderTimed
from truestep.probes.data import loader_times
from truestep.probes.data.loader_times import Pass, Wait
from truestep.testing import capture_events


class Run:
    """Batches that come at a signal, and training that takes its time."""

    def __init__(self, workers: int) -> None:
        self.now = 100.0
        self.wait = Wait(1, workers, self.now)

    def go(self, made_in: float, comes_in: list[float], trained_in: float) -> None:
        """Go through one pass: make the iterator, then wait for each batch and train on it."""
        begun, self.now = self.now, self.now + made_in
        timed = Pass(self.wait, begun, self.now)
        for seconds in comes_in:
            begun, self.now = self.now, self.now + seconds
            timed.drawn(begun, self.now)
            self.now += trained_in


def test_slow_starts_are_counted_from_the_second_pass_on() -> None:
    run = Run(workers=2)
    for _ in range(4):
        run.go(0.5, [1.0, 0.0, 0.1, 0.0], 0.05)
    assert run.wait.starting == pytest.approx(3 * (1.5 - 0.2))
    assert run.wait.waited == pytest.approx(0.1 + 3 * 1.6)


def test_batches_that_take_long_to_make_are_no_slow_start() -> None:
    run = Run(workers=2)
    for _ in range(4):
        run.go(0.0, [1.0, 0.0, 1.0, 0.0], 0.0)
    assert run.wait.starting == 0.0
    assert run.wait.waited == pytest.approx(1.0 + 3 * 2.0)


def test_a_pass_with_no_more_batches_than_workers_tells_nothing_of_the_start() -> None:
    run = Run(workers=4)
    for _ in range(4):
        run.go(0.5, [1.0, 0.0, 0.0, 0.0], 0.0)
    assert run.wait.starting == 0.0


def test_without_workers_nothing_is_started() -> None:
    run = Run(workers=0)
    for _ in range(4):
        run.go(0.5, [1.0, 0.1], 0.0)
    assert run.wait.starting == 0.0


def test_the_first_batch_of_all_is_left_out() -> None:
    run = Run(workers=0)
    run.go(5.0, [20.0, 1.0, 1.0], 0.5)
    event = run.wait.event()
    assert event is not None
    assert (event.waited_s, event.span_s, event.drawn) == (2.0, 3.0, 3)


def test_short_waits_are_not_emitted() -> None:
    run = Run(workers=0)
    run.go(0.0, [0.1] * 8, 10.0)
    assert run.wait.event() is None


def test_waits_of_each_loader_are_emitted_when_watching_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_times, "_LEAST_S", 0.0)
    data = TensorDataset(torch.arange(12.0))
    with capture_events() as events:
        for loader in (DataLoader(data, 4), DataLoader(data, 6, num_workers=1), DataLoader(data, 3)):
            for _ in range(2):
                assert len(list(loader)) == len(loader)
    told = [event for event in events if isinstance(event, LoaderTimed)]
    assert [(event.loader, event.passes, event.drawn) for event in told] == [(1, 2, 6), (2, 2, 4), (3, 2, 8)]
    assert all(0 <= event.starting_s <= event.waited_s <= event.span_s for event in told)
    assert not any(event.beside for event in told)


@pytest.mark.parametrize(("looks", "crowded"), [([2.0, 2.3], False), ([2.0, 4.0], True)])
def test_the_time_that_others_had_the_processors_is_emitted(
    looks: list[float], crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(looks)
    monkeypatch.setattr(loader_times, "processor", lambda: next(told))
    run = Run(workers=0)
    run.go(0.0, [1.0, 2.0, 2.0], 0.0)
    event = run.wait.event()
    assert event is not None
    assert (event.delayed_s, event.crowded) == (pytest.approx(looks[1] - looks[0]), crowded)


def test_a_system_that_tells_nothing_of_its_processors_takes_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object, **more: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert loader_times.processor() == 0.0
