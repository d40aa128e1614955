"""Base class of changes that apply only at the lines of findings."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.change import Change

_CALL = "_wrapped_call_impl"
"""Name of torch's function for every call of a module."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A finding that a change should fix.

    Attributes:
        lines: path and number of its line, and of related lines. Paths below the working folder are relative to it,
            since every variant runs in another copy.
        help: fix that the finding recommends.
    """

    lines: tuple[tuple[str, int], ...]
    help: str = ""


class Aimed(Change):
    """A change at the lines of findings. Without lines, it does not patch torch.

    Args:
        aims: findings, in the form of `aim_of`.
        idle: True watches for lines as usual but changes nothing: the reference for timing a variant.
    """

    def __init__(self, aims: Iterable[Mapping[str, Any]] = (), idle: bool = False) -> None:
        super().__init__()
        self.aims = [Aim(tuple((str(path), int(line)) for path, line in aim["lines"]), aim["help"]) for aim in aims]
        self._idle = idle
        self._folder = os.getcwd()
        self._places: dict[str, str] = {}
        self._first = {aim.lines[0]: aim for aim in self.aims if aim.lines}
        self._any = {line: aim for aim in self.aims for line in aim.lines}

    def install(self, stack: ExitStack) -> None:
        if self.aims or self._idle:
            self.aim(stack)

    @abstractmethod
    def aim(self, stack: ExitStack) -> None:
        """Apply the change; the stack undoes it exactly. torch must be imported."""

    def at(self, frame: FrameType | None, *, beside: bool = False) -> Aim | None:
        """Return the finding with the line that a frame or one of its callers is running; None without one.

        Args:
            frame: the innermost frame.
            beside: True includes the related lines of findings.
        """
        lines = self._any if beside else self._first
        while frame is not None:
            aim = lines.get((self._place(frame), frame.f_lineno))
            if aim is not None:
                return aim
            frame = frame.f_back
        return None

    def at_call(self, frame: FrameType | None) -> Aim | None:
        """Return the finding with the line that calls a module; None for calls between modules."""
        calls = 0
        while frame is not None:
            if frame.f_code.co_name == _CALL:
                calls += 1
                if calls > 1:
                    return None
            else:
                aim = self._first.get((self._place(frame), frame.f_lineno))
                if aim is not None:
                    return aim
            frame = frame.f_back
        return None

    def _place(self, frame: FrameType) -> str:
        path = frame.f_code.co_filename
        place = self._places.get(path)
        if place is None:
            place = self._places[path] = place_of(path, self._folder)
        return place


def place_of(path: str, folder: str) -> str:
    """Return a path that is equal in every copy of a folder: relative to the folder if it lies below it.

    >>> place_of("/a/b/train.py", "/a"), place_of("train.py", "/a"), place_of("/usr/x.py", "/a")
    ('b/train.py', 'train.py', '/usr/x.py')
    """
    full, below = os.path.realpath(os.path.join(folder, path)), os.path.join(os.path.realpath(folder), "")
    return full.removeprefix(below)


def aim_of(lines: Sequence[tuple[str, int]], help: str, folder: str) -> dict[str, Any]:
    """Return a finding as an argument of a change, in values for JSON.

    Args:
        lines: path and number of each line; the primary line first.
        help: fix that the finding recommends.
        folder: working folder at the start of the script.
    """
    return {"lines": [[place_of(path, folder), line] for path, line in lines], "help": help}
