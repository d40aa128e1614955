"""The tests that reach a fault, run in a fork of this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest


@dataclass(slots=True)
class Map:
    """Which tests reach which fault, and their processor time.

    Attributes:
        seconds: processor seconds of each test that passes without a fault.
        reached: for each fault the tests, and the shared fixtures, that reach it; "" for the import of a module.
        users: for each shared fixture the tests that use it.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    reached: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    users: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def read(cls, tests: Path, hits: Path) -> Self:
        """Return the map that a marked run has written so far."""
        found = cls()
        for line in tests.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # the last line, while it is written
                row = json.loads(line)
                if not row["failed"]:
                    found.seconds[row["id"]] = row["cpu"]
                for name in row["shared"]:
                    found.users[name].append(row["id"])
        for line in hits.read_text(encoding="utf-8").splitlines():
            number, _, name = line.partition("\t")
            if number:
                found.reached[int(number)].add(name)
        return found

    def tests(self, number: int, file: str) -> list[str]:
        """Return the tests that reach a fault in a file: those of its room and its name first, then the fastest."""
        place = Path(file).relative_to("src/truestep")
        room = f"tests/{place.parts[0]}/"
        names = self.reached[number]
        tests = {test for name in names for test in self.users.get(name, [name])} & self.seconds.keys()
        if "" in names:  # when its module is imported: any test of the room
            tests |= {test for test in self.seconds if test.startswith(room)}

        def rank(test: str) -> tuple[bool, bool, float, str]:
            return not test.startswith(room), place.stem not in test.partition("::")[0], self.seconds[test], test

        return sorted(tests, key=rank)


class Chosen:
    """pytest plugin: runs given tests in a given order, and keeps the first failure."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self.failure = ""
        self.run = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the given tests, in their order."""
        kept = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(kept, key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the error of a file that cannot be imported."""
        if report.failed:
            self.failure = self.failure or f"{report.nodeid} (import)"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first test that fails."""
        self.run += report.when == "teardown"
        if report.failed:
            self.failure = self.failure or report.nodeid


def noticed(tree: Path, tests: list[str], limit: float) -> tuple[str, int]:
    """Run tests in a fork until one fails.

    Args:
        tree: the tree with the fault.
        tests: ids of the tests, in their order.
        limit: seconds after which the tests are stopped.

    Returns:
        the first test that fails, or "" if all pass; how many were run.
    """
    answer, result = os.pipe()
    child = os.fork()
    if child == 0:
        _be_pytest(tree, tests, result)
    os.close(result)
    ended = time.monotonic() + limit
    while time.monotonic() < ended and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.05)
    late = time.monotonic() >= ended
    for process in [*_descendants(child), child] if late else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    if late:
        os.waitpid(child, 0)
        os.close(answer)
        return "does not end", 0
    with os.fdopen(answer, encoding="utf-8") as file:
        text = file.read()
    failure, run = json.loads(text) if text else ("pytest does not end in order", 0)
    return failure, run


def _be_pytest(tree: Path, tests: list[str], result: int) -> None:
    """Run the tests, write the answer, and end this process."""
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    sys.path[:] = [str(tree / "src"), *(one for one in sys.path if not one.endswith("/src"))]
    chosen = Chosen(tests)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    arguments = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    status: Any = pytest.main(arguments, plugins=[chosen])
    failure = chosen.failure or ("" if status in (0, 5) else f"pytest ends with {int(status)}")
    os.write(result, json.dumps([failure, chosen.run]).encode())
    os._exit(0)


def _descendants(process: int) -> list[int]:
    """Return the numbers of the processes below a process."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    return [one for child in map(int, text.split()) for one in (child, *_descendants(child))]
