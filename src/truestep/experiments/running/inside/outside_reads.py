"""Record the files that a run reads outside of its copy of the working folder: its outcome depends on them too."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

READS = "reads.txt"
_NATIVE = (
    *("av", "cv2", "decord", "h5py", "lmdb", "netCDF4", "polars", "pyarrow"),
    *("rasterio", "safetensors.numpy", "safetensors.torch", "soundfile", "tensorstore", "torchcodec"),
)
"""Libraries that open files in native code, which audit hooks do not see."""
_STARTED = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
"""Modules that are imported when a process starts that does not inherit the hook."""
_OPENS = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
PACKAGE = Path(__file__).parents[2]
"""Folder of truestep, left out here: the key of an outcome covers all of its files."""
UNSEEN = "?"
"""Prefix of lines about reads that could not be recorded."""


class OutsideReads:
    """Writes each file and folder that Python opens for reading outside of some folders to a list, once per process.

    Forked processes write to the same list. Installed packages are left out: their versions are part of the key.

    Args:
        path: path of the list.
        own: folders to leave out: the copy and the results of the run.
    """

    def __init__(self, path: Path, own: Iterable[Path]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        places = [str(place) for place in (*own, PACKAGE)] + installed()
        self._left_out = tuple(os.path.join(os.path.realpath(place), "") for place in places)
        self._met: set[str] = set()
        self._busy = threading.local()

    def listen(self) -> None:
        """Install the audit hook, which cannot be removed: it records until the process ends."""
        sys.addaudithook(self._heard)

    def ended(self) -> None:
        """Add the files of modules that were imported without `open`, and mark reads that could not be recorded."""
        for name, module in list(sys.modules.items()):
            with contextlib.suppress(Exception):
                if isinstance(file := vars(module).get("__file__"), str):
                    self._add(file)
                if "safe_open" in vars(module) and not name.startswith(("safetensors", "truestep.")):
                    self._write(f"{UNSEEN}safe_open of {name}")
        for name in (*_NATIVE, *_STARTED):
            if name in sys.modules:
                self._write(f"{UNSEEN}{name}")

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self._write(f"{UNSEEN}{event}")
        if event not in _OPENS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            path = arguments[0] if arguments[0] is not None else "."
            written_only = event == "open" and _is_write(arguments[2])
            if isinstance(path, str | bytes | os.PathLike) and not written_only:
                self._add(os.fsdecode(path))
        except Exception:  # an unusual file name must not fail the script's own call
            pass
        finally:
            self._busy.now = False

    def _add(self, path: str) -> None:
        if path in self._met:
            return
        self._met.add(path)
        with contextlib.suppress(ValueError, NotImplementedError):
            if path.endswith(".pyc"):
                path = importlib.util.source_from_cache(path)
        real = os.path.realpath(path)
        if not os.path.join(real, "").startswith(self._left_out):
            self._write(real)

    def _write(self, line: str) -> None:
        if line not in self._met and "\n" not in line:
            self._met.add(line)
            with contextlib.suppress(OSError):
                os.write(self._file, os.fsencode(line) + b"\n")


def _is_write(flags: Any) -> bool:
    return isinstance(flags, int) and flags & os.O_ACCMODE == os.O_WRONLY


def installed() -> list[str]:
    """Return the folders of Python, of installed packages and of the system: their files count as constant."""
    paths = [path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib")]
    system = ["/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr/lib", "/usr/lib64", "/usr/share"]
    zipped = [path for path in sys.path if path.endswith(".zip")]
    return [*paths, *packages(), *system, *zipped]


def packages() -> list[str]:
    """Return the folders of installed packages."""
    found = [path for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib")]
    return list(dict.fromkeys([*found, *site.getsitepackages(), site.getusersitepackages()]))


def read_reads(folder: Path) -> frozenset[str] | None:
    """Return the files that the processes of a run read; None if some reads could not be recorded."""
    lines: set[str] = set()
    for path in (folder / READS, *folder.glob(f"rank*/{READS}")):
        with contextlib.suppress(OSError):
            lines |= {os.fsdecode(line) for line in path.read_bytes().splitlines()}
    is_whole = (folder / READS).exists() and not any(line.startswith(UNSEEN) for line in lines)
    return frozenset(lines) if is_whole else None


Stamp = tuple[str, int, int]


def stamps(paths: Iterable[str]) -> list[Stamp]:
    """Return path, size in bytes and time in nanoseconds of each file; -1 for a missing file."""
    found: list[Stamp] = []
    for path in sorted(paths):
        try:
            stat = os.stat(path)
            found.append((path, stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append((path, -1, -1))
    return found
