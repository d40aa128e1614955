"""Events of processes that multiprocessing starts; those that serve the run have none."""

from __future__ import annotations

import inspect
import multiprocessing
from multiprocessing.process import BaseProcess

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset

from truestep import events as ev
from truestep.testing import capture_events

FORK = multiprocessing.get_context("fork")


def started(events):
    return [event for event in events if isinstance(event, ev.ProcessStarted)]


def test_process_and_its_line():
    with capture_events() as events:
        process = FORK.Process(target=print, args=("",))
        process.start()
        process.join()
    (event,) = started(events)
    assert event.site.path == __file__
    assert process.exitcode == 0


def test_pool_counts_each_process():
    with capture_events() as events:
        with FORK.Pool(2) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
    assert len(started(events)) == 2


def test_workers_and_managers_serve_the_run():
    with capture_events() as events:
        for _ in DataLoader(TensorDataset(torch.ones(4, 1)), num_workers=1, multiprocessing_context="fork"):
            pass
        with FORK.Manager() as manager:
            manager.list()
    assert started(events) == []


def test_process_that_fails_to_start_is_not_emitted():
    with capture_events() as events:
        process = FORK.Process(target=print, args=("",))
        process.start()
        process.join()
        with pytest.raises(AssertionError, match="twice"):
            process.start()
    assert len(started(events)) == 1


def test_start_is_what_it_was():
    before = BaseProcess.start
    with capture_events():
        assert inspect.signature(BaseProcess.start) == inspect.signature(before)
    assert BaseProcess.start is before
