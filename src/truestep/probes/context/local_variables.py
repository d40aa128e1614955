"""Read the local variables of frames unnoticed.

Before Python 3.13 a function's snapshot of locals is one dict: the one that its own ``locals()`` has returned, and
where its ``exec`` has left names. To read ``f_locals`` refills it, so that the frames of such functions are not read. A
debugger writes into it: while one runs no function's is read, whatever the version.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
from types import CodeType, FrameType

ONE_SNAPSHOT = sys.version_info < (3, 13)
_CO_OPTIMIZED = 0x1
_ALWAYS = frozenset({"locals", "f_locals", "_getframe", "currentframe"})
"""Lead to the snapshot, by whatever way they are reached."""
_BUILTIN = frozenset({"eval", "exec", "vars", "dir"})
"""Lead to it as builtin functions; a method may have such a name as well: ``model.eval()``."""
_BUILTINS = frozenset({"builtins", "__builtins__"})
_WITHOUT_ARGUMENTS = frozenset({"vars", "dir"})
"""Do so only without arguments: ``vars(args)`` looks at something else."""
_NULL = 1
"""The bit of ``LOAD_GLOBAL`` that says that the call of what is loaded comes next, after its arguments."""


def readable(frame: FrameType) -> bool:
    """Return True if the locals of a frame can be read unnoticed; those of a module are no snapshot."""
    code = frame.f_code
    if not code.co_flags & _CO_OPTIMIZED:
        return True
    return sys.gettrace() is None and not (ONE_SNAPSHOT and shares_snapshot(code))


def variables(frame: FrameType) -> dict[str, object]:
    """Return the local variables of a frame, none where it is not `readable`, and leave no snapshot behind."""
    if not readable(frame):
        return {}
    names = frame.f_locals
    found = dict(names)
    if ONE_SNAPSHOT and frame.f_code.co_flags & _CO_OPTIMIZED:
        names.clear()
    return found


def argument(frame: FrameType, name: str) -> object:
    """Return a local variable of a frame as `variables` does, None where there is none."""
    if not readable(frame):
        return None
    names = frame.f_locals
    value = names.get(name)
    if ONE_SNAPSHOT and frame.f_code.co_flags & _CO_OPTIMIZED:
        names.clear()
    return value


def shares_snapshot(code: CodeType) -> bool:
    """Return True if a function may hold its own snapshot of locals, or names that exist only there.

    >>> def predicts(model, args, x):
    ...     model.eval()
    ...     return model(x), vars(args)
    >>> def keeps(lr, width):
    ...     return dict(settings=locals())
    >>> shares_snapshot(predicts.__code__), shares_snapshot(keeps.__code__)
    (False, True)
    """
    names = code.co_names
    if not _ALWAYS.isdisjoint(names):
        return True
    if _BUILTIN.isdisjoint(names):
        return False
    return not _BUILTINS.isdisjoint(names) or _calls_builtin(code)


@functools.lru_cache(maxsize=256)
def _calls_builtin(code: CodeType) -> bool:
    """Return True if the code loads one of the builtin functions, and not an attribute or a method of that name."""
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("PRECALL", "CACHE")]
    for one, following in itertools.pairwise(instructions):
        if one.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT")) and one.argval in _BUILTIN:
            given = following.opname != "CALL" and one.opname == "LOAD_GLOBAL" and (one.arg or 0) & _NULL
            if not (given and one.argval in _WITHOUT_ARGUMENTS):
                return True
    return False
