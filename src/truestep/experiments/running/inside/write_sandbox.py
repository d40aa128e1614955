"""Restrict a script to writing in given folders, so that an experiment cannot overwrite files of the user.

On Linux 5.13 and later, the kernel enforces it (Landlock), for this process and its children, and for every library.
Elsewhere an audit hook checks the calls of Python only.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls of Landlock; their numbers are the same on every architecture."""
_NO_NEW_PRIVILEGES = 38
_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 13))
"""Access rights: write to a file; remove and create files, folders, links, sockets and devices."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITING_EVENTS = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink")


def confine(places: Iterable[Path]) -> str:
    """Allow this process to write only below these places, permanently. Return the enforcer: "kernel" or "python".

    Args:
        places: files and folders; missing ones are skipped.
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
                raise PermissionError(f"an experiment may write only below its own folder, got {real}")

    sys.addaudithook(look)
