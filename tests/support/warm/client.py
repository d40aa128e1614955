"""Starts of Python by `subprocess`, as forks of one server where nothing of a start is missing by that."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).with_name("server.py")
_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""
_READ_AT_IMPORT = re.compile(r"(PYTHON|OMP_|MKL_|KMP_|OPENBLAS|TORCH(?!ELASTIC)|PYTORCH|LD_|LC_|LANG|MALLOC_)")
_READ_LATER = (
    "PYTHONPATH",
    "PYTHONWARNINGS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONUNBUFFERED",
    # Set by torch and scikit-learn in the process of the tests.
    "TORCHINDUCTOR_CACHE_DIR",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
)

_ENVIRONMENT = dict(os.environ)
"""The environment of the server; later changes by tests are for single processes."""
_INTERRUPTED = signal.getsignal(signal.SIGINT)
_cold_start = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_cold = 0
_one_at_a_time = threading.RLock()


def install() -> None:
    """Let `subprocess` start each Python of the tests warm, where that makes no difference. Linux only.

    Not with triton, which lists its unfreed memory at the exit of a process that was forked.
    """
    if sys.platform == "linux" and importlib.util.find_spec("triton") is None:
        subprocess.Popen._execute_child = _execute_child  # type: ignore[attr-defined]


@contextlib.contextmanager
def cold_starts() -> Iterator[None]:
    """Start nothing warm."""
    global _cold
    _cold += 1
    try:
        yield
    finally:
        _cold -= 1


def _execute_child(
    self: Any,
    args: Any,
    executable: Any,
    preexec_fn: Any,
    close_fds: bool,
    pass_fds: Any,
    cwd: Any,
    env: Any,
    startupinfo: Any,
    creationflags: Any,
    shell: bool,
    p2cread: int,
    p2cwrite: int,
    c2pread: int,
    c2pwrite: int,
    errread: int,
    errwrite: int,
    restore_signals: bool,
    gid: Any,
    gids: Any,
    uid: Any,
    umask: int,
    start_new_session: bool,
    process_group: int,
) -> None:
    rest = (gid, gids, uid, preexec_fn, executable)
    plain = close_fds and restore_signals and not pass_fds and not shell and all(one is None for one in rest)
    request = _request(args, cwd, env) if plain and not _cold else None
    if request is None:
        _cold_start(
            self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
            p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
            start_new_session, process_group,
        )  # fmt: skip
        return
    sys.audit("subprocess.Popen", request["command"][0], request["command"], cwd, env)
    current = os.umask(0)
    os.umask(current)
    request |= {"umask": current if umask < 0 else umask, "session": start_new_session, "group": process_group}
    streams = [mine if given == -1 else given for mine, given in enumerate((p2cread, c2pwrite, errwrite))]
    self.pid = _started(request, streams)
    self._child_created = True
    self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


def _request(args: Any, cwd: Any, env: Any) -> dict[str, Any] | None:
    """Return the request to the server, or None where only a cold start is the same."""
    if isinstance(args, (str, bytes, os.PathLike)):
        return None
    command = [os.fspath(one) for one in args]
    environment = _inherited() if env is None else dict(env)
    if command[0] != sys.executable or not all(isinstance(one, str) for one in (*command, *environment.values())):
        return None
    if _imports(environment) != _imports(_ENVIRONMENT) or signal.getsignal(signal.SIGINT) != _INTERRUPTED:
        return None
    rest, warnings = command[1:], []
    while rest[:1] == ["-W"]:
        warnings.append(rest[1])
        rest = rest[2:]
    if not rest:
        return None
    how = rest.pop(0) if rest[0] in ("-c", "-m") else ""
    try:
        folder = os.fspath(cwd) if cwd is not None else os.getcwd()
        if not rest or (rest[0].startswith("-") and not how) or not os.path.isdir(folder):
            return None
    except OSError:
        return None
    if not how and (not rest[0].endswith(".py") or not os.path.isfile(os.path.join(folder, rest[0]))):
        return None
    return {
        "command": command,
        "how": how,
        "what": rest[0],
        "arguments": rest[1:],
        "warnings": warnings,
        "folder": folder,
        "environment": environment,
    }


def _inherited() -> dict[str, str]:
    """Return the environment of this process, with variables that libraries set past `os.environ`."""
    found = {}
    for entry in ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"):
        if entry is None:
            return found
        name, _, value = os.fsdecode(entry).partition("=")
        found[name] = value
    return found


def _imports(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that are read once, when Python starts or torch is imported."""
    read = {name: value for name, value in environment.items() if _READ_AT_IMPORT.match(name)}
    for name in _READ_LATER:
        read.pop(name, None)
    if "PYTHONIOENCODING" not in _ENVIRONMENT:  # the server sets that of a process, and knows none for the others
        read.pop("PYTHONIOENCODING", None)
    if read.get("PYTHONHASHSEED") == "0":  # that of the server
        del read["PYTHONHASHSEED"]
    return read


def _started(request: dict[str, Any], streams: list[int]) -> int:
    libc = ctypes.CDLL(None)
    text = json.dumps(request).encode()
    with _one_at_a_time:
        server, _ = _server()
        libc.prctl(_CHILD_SUBREAPER, 1)
        try:
            socket.send_fds(server, [b"%16d" % len(text)], streams)
            server.sendall(text)
            return int(server.recv(32, socket.MSG_WAITALL))
        finally:
            libc.prctl(_CHILD_SUBREAPER, 0)


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    mine, theirs = socket.socketpair()
    with theirs, cold_starts():
        server = subprocess.Popen(
            [sys.executable, str(_SERVER), str(theirs.fileno())],
            env=_ENVIRONMENT | {"PYTHONHASHSEED": "0"},
            cwd=_SERVER.parent,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
    atexit.register(_close, mine, server)
    return mine, server


def _close(connection: socket.socket, server: subprocess.Popen[bytes]) -> None:
    connection.close()
    server.wait()
