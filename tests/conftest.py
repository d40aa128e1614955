"""For the tests that start processes: a Python is started warm, unless a test is about the start itself."""

import contextlib
import gc

import pytest
import warm

warm.install()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Leave the objects of the collected tests out of garbage collections, of which tests ask for many."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Start nothing warm in a test that is marked as cold, nor in its fixtures."""
    with warm.cold_starts() if item.get_closest_marker("cold") else contextlib.nullcontext():
        return (yield)
