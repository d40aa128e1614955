"""How a generator is asked for its next value: by a loop, or by `next()` in the body of another one."""

from __future__ import annotations

import dis
import inspect
import sys
from types import FrameType

_FOR_ITER = dis.opmap["FOR_ITER"]
_CACHE = dis.opmap.get("CACHE", 0)


def requested_by_next(depth: int = 1) -> bool:
    """Return True if the generator that calls this was asked by `next()`, and not by a `for`.

    Generators and iterators of the program between both are skipped: only their caller counts.

    Args:
        depth: how many frames above this one the generator is.

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
    while at > 0 and code[at] == _CACHE:  # Python 3.12 stands behind its instruction once that is specialised
        at -= 2
    return code[at] != _FOR_ITER
