"""What a run read from places outside of its copy of the working folder: an outcome depends on these files too."""

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
"""Libraries that open files without Python: which ones, no hook is told."""
_STARTED = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
"""Imported when a process is started that inherits no hook."""
_OPENS = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
PACKAGE = Path(__file__).parents[2]
"""Of truestep: what names an outcome holds all of its files."""
UNSEEN = "?"
"""Stands in the list for what could not be seen."""


class Reads:
    """Writes down each file and folder that Python opens for reading outside of some folders, once per process.

    Forked processes write into the same file. Installed packages are left out: versions stand for them.

    Args:
        path: of the file.
        own: folders that are left out: the copy, and what belongs to the run.
    """

    def __init__(self, path: Path, own: Iterable[Path]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        places = [str(place) for place in (*own, PACKAGE)] + installed()
        self._left_out = tuple(os.path.join(os.path.realpath(place), "") for place in places)
        self._met: set[str] = set()
        self._busy = threading.local()

    def listen(self) -> None:
        """Listen until the process is over: an audit hook cannot be removed."""
        sys.addaudithook(self._heard)

    def ended(self) -> None:
        """Add the modules that no `open` told of, and say where files were opened that nobody saw."""
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
        except Exception:  # whatever the name of a file is, the script opens it
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
    """Return the folders of Python itself, of installed packages and of the system, whose files stay what they are."""
    paths = [path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib")]
    system = ["/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr/lib", "/usr/lib64", "/usr/share"]
    zipped = [path for path in sys.path if path.endswith(".zip")]
    return [*paths, *packages(), *system, *zipped]


def packages() -> list[str]:
    """Return the folders that packages are installed in."""
    found = [path for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib")]
    return list(dict.fromkeys([*found, *site.getsitepackages(), site.getusersitepackages()]))


def read_reads(folder: Path) -> frozenset[str] | None:
    """Return what the processes of a run have read; None where not all of it was seen.

    Args:
        folder: the results of the run.
    """
    lines: set[str] = set()
    for path in (folder / READS, *folder.glob(f"rank*/{READS}")):
        with contextlib.suppress(OSError):
            lines |= {os.fsdecode(line) for line in path.read_bytes().splitlines()}
    is_whole = (folder / READS).exists() and not any(line.startswith(UNSEEN) for line in lines)
    return frozenset(lines) if is_whole else None


Stamp = tuple[str, int, int]


def stamps(paths: Iterable[str]) -> list[Stamp]:
    """Return path, size and time of each file; -1 for what is not there."""
    found: list[Stamp] = []
    for path in sorted(paths):
        try:
            told = os.stat(path)
            found.append((path, told.st_size, told.st_mtime_ns))
        except OSError:
            found.append((path, -1, -1))
    return found
