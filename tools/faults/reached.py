"""pytest plugin of the marked run: the current test, its processor time and its shared fixtures, one JSON line each."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from faults.planting import MARKS

STARTERS = re.compile(
    r"subprocess|pytester|multiprocessing|judging|"
    r"from (commands|hosts|mirrors|of_ranks|programs|several_ranks|srun|terminals) import"
)
"""Text of a file with tests that start processes: they run last, since a map without them is useful already."""


class Reached:
    """Tells the marks which test runs.

    Args:
        file: file of the lines.
    """

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", encoding="utf-8")
        self._known = {json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()}
        self._marks = importlib.import_module(MARKS)
        self._failed = False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the tests that start processes last, and those with a line not again."""
        items[:] = [item for item in items if item.nodeid not in self._known]
        files = {item.path for item in items}
        late = {file for file in files if STARTERS.search(file.read_text(encoding="utf-8"))}
        items.sort(key=lambda item: item.path in late)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Write the line of a test."""
        self._failed = False
        self._marks.begin(item.nodeid)
        before = sum(os.times()[:4])
        result = yield
        seconds = round(sum(os.times()[:4]) - before, 3)
        self._marks.begin("")
        row = {"id": item.nodeid, "cpu": seconds, "failed": self._failed, "shared": shared(item)}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure."""
        self._failed |= report.failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Attribute a shared fixture to all tests that use it."""
        if fixturedef.scope == "function":
            return (yield)
        self._marks.begin(name_of(fixturedef))
        try:
            return (yield)
        finally:
            self._marks.begin(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0])


def name_of(fixture: Any) -> str:
    """Return the name that a shared fixture has in the map."""
    return f"@{fixture.argname} {fixture.baseid}"


def shared(item: pytest.Item) -> list[str]:
    """Return the names of the shared fixtures of a test."""
    found = getattr(item, "_fixtureinfo", None)
    fixtures = [one for group in found.name2fixturedefs.values() for one in group] if found else []
    return sorted({name_of(one) for one in fixtures if one.scope != "function"})
