"""Keeps a script from writing outside of the places that it was given: an experiment overwrites nothing of the user's.

On Linux from 5.13 on the kernel does it (Landlock), for this process and all that it starts, whatever library writes.
Elsewhere python's own calls are looked at, by an audit hook.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls, of the same number on every architecture."""
_NO_NEW_PRIVILEGES = 38
_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 13))
"""To write to a file; to remove and to make files, folders, links, sockets and devices."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITING_EVENTS = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink")


def confine(places: Iterable[Path]) -> str:
    """Let this process write below these places and nowhere else, for good. Return what holds it: "kernel" or "python".

    Args:
        places: files and folders; those that are not there are passed over.
    """
    places = [place for place in places if place.exists()]
    if sys.platform == "linux" and _landlock(places):
        return "kernel"
    _audit([os.path.realpath(place) for place in places])
    return "python"


def _landlock(places: list[Path]) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, 1)
    if version < 1:
        return False
    handled = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = libc.syscall(_CREATE, ctypes.byref(ctypes.c_uint64(handled)), 8, 0)
    if rules < 0:
        return False
    try:
        for place in places:
            opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
            try:
                allowed = handled if place.is_dir() else handled & ((1 << 1) | _TRUNCATE)
                if libc.syscall(_ADD, rules, 1, ctypes.byref(_PathBeneath(allowed, opened)), 0):
                    return False
            finally:
                os.close(opened)
        return bool(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def _audit(places: list[str]) -> None:
    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        else:
            path, writes = arguments[0] if arguments else None, event in _WRITING_EVENTS
        if writes and isinstance(path, str | bytes | os.PathLike):
            real = os.path.realpath(os.fsdecode(path))
            if not any(real == place or real.startswith(place + os.sep) for place in places):
                raise PermissionError(f"an experiment writes nothing outside of its own folder, and this is: {real}")

    sys.addaudithook(look)
