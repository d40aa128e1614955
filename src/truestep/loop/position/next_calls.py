"""Requests to a generator: by a `for` loop, or by `next()` in the body of another loop."""

from __future__ import annotations

import dis
import inspect
import sys
from types import FrameType

_FOR_ITER = dis.opmap["FOR_ITER"]
_CACHE = dis.opmap.get("CACHE", 0)


def requested_by_next(depth: int = 1) -> bool:
    """Return True if `next()` requested the value of the calling generator, and not a `for` loop.

    Generators and iterators of the program in between are skipped: only their caller counts.

    Args:
        depth: number of frames between this one and the generator.

    Example:
        >>> def asked():
        ...     yield requested_by_next()
        >>> next(asked()), [answer for answer in zip(asked())]
        (True, [(False,)])
    """
    frame: FrameType | None = sys._getframe(depth).f_back
    while frame is not None and (
        frame.f_code.co_flags & inspect.CO_GENERATOR or frame.f_code.co_name == "__next__"
    ):  # such as enumerate written in Python
        frame = frame.f_back
    if frame is None:
        return True
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] == _CACHE:  # in Python 3.12 f_lasti is behind a specialised instruction
        at -= 2
    return code[at] != _FOR_ITER
