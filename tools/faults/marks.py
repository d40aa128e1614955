"""Module in a marked tree: records which test reaches which mark, from every process that the test starts."""

import os

_HERE = os.path.dirname(os.path.abspath(__file__))
CURRENT = os.path.join(_HERE, "current.txt")
HITS = os.path.join(_HERE, "hits.txt")

_test = ""
_process = 0
_seen: set[tuple[int, str]] = set()


def begin(test: str) -> None:
    """Set the test, or shared fixture, that this process and those that it starts belong to."""
    global _test, _process
    _test, _process = test, os.getpid()
    with open(CURRENT, "w", encoding="utf-8") as file:
        file.write(test)


def hit(number: int) -> None:
    """Record that the current test reaches a mark."""
    global _test, _process
    try:
        if _process != os.getpid():  # started by the test, or forked by it
            _process = os.getpid()
            with open(CURRENT, encoding="utf-8") as file:
                _test = file.read()
        if (number, _test) not in _seen:
            os.write(_hits, f"{number}\t{_test}\n".encode())
            _seen.add((number, _test))
    except OSError:  # a program that may not read or write
        pass


_hits = os.open(HITS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)  # now: a sandbox may forbid it later
