"""Read the local variables of frames without a change to the program.

Before Python 3.13 a function has one dict as the snapshot of its locals: ``locals()`` returns it, and ``exec`` leaves
names in it. Reading ``f_locals`` refills it, so frames of functions that use it are not read. A debugger writes into
it: while one runs, no frame of a function is read, in any version.
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
"""Names that lead to the snapshot, as functions, attributes or methods."""
_BUILTIN = frozenset({"eval", "exec", "vars", "dir"})
"""Names that lead to it as builtin functions; methods may have them too: ``model.eval()``."""
_BUILTINS = frozenset({"builtins", "__builtins__"})
_LIBRARIES = frozenset({"builtins", "torch", "numpy"})
_WITHOUT_ARGUMENTS = frozenset({"vars", "dir"})
"""Those that lead to it only without arguments: ``vars(args)`` reads another object."""
_NULL = 1
"""The bit of ``LOAD_GLOBAL`` that is set if the loaded object is called next, after its arguments."""


def readable(frame: FrameType) -> bool:
    """Return True if reading the locals of a frame changes nothing; those of a module are not a snapshot."""
    code = frame.f_code
    if not code.co_flags & _CO_OPTIMIZED:
        return True
    return sys.gettrace() is None and not (ONE_SNAPSHOT and shares_snapshot(code))


def variables(frame: FrameType) -> dict[str, object]:
    """Return the local variables of a frame, {} if it is not `readable`, and leave no snapshot behind."""
    if not readable(frame):
        return {}
    names = frame.f_locals
    found = dict(names)
    if ONE_SNAPSHOT and frame.f_code.co_flags & _CO_OPTIMIZED:
        names.clear()
    return found


def argument(frame: FrameType, name: str) -> object:
    """Return a local variable of a frame, as in `variables`; None if it does not exist."""
    if not readable(frame):
        return None
    names = frame.f_locals
    value = names.get(name)
    if ONE_SNAPSHOT and frame.f_code.co_flags & _CO_OPTIMIZED:
        names.clear()
    return value


def own_dict(held: object) -> dict[str, object] | None:
    """Return the attributes of an object of a class of the program, without its code; None for other objects."""
    kind = type(held)
    if issubclass(kind, type) or kind.__module__.partition(".")[0] in _LIBRARIES:
        return None
    try:
        names = object.__getattribute__(held, "__dict__")
    except AttributeError:
        return None
    return names if type(names) is dict else None


def shares_snapshot(code: CodeType) -> bool:
    """Return True if a function may use its snapshot of locals, or names that exist only in it.

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
