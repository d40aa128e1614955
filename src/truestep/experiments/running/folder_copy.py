"""A temporary copy of the working folder, so that a script changes no file of the user."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_LARGE_BYTES = 16 * 2**20
"""Larger files become symbolic links: the script can read but not write them."""
_MOST_BYTES = 512 * 2**20
"""Bytes to copy in all; further files become links."""
_MOST_FILES = 20_000
"""Files to copy in all; further files become links."""
_LINKED = {".git", ".hg", ".venv", "venv", "node_modules", ".tox", ".nox", ".mypy_cache", "__pycache__"}
"""Folders of programs and histories, which a training at most reads: they become links."""


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Context manager: yields a copy of a folder, and removes it on exit.

    Small files are copied; larger files and folders of programs are links to the originals.
    """
    with TemporaryDirectory(prefix="truestep-", ignore_cleanup_errors=True) as place:
        folder = folder.resolve()
        copy = _surround(folder, Path(place, "root"))
        _mirror(folder, copy, _Budget(_MOST_BYTES, _MOST_FILES))
        yield copy


def _surround(folder: Path, root: Path) -> Path:
    """Return the path for a copy, surrounded by links to the siblings of the folder and its parents: `../data` works.

    Args:
        folder: the folder to copy.
        root: replacement for the root of the file system.
    """
    original, place = Path(folder.anchor), root
    place.mkdir()
    for part in folder.parts[1:]:
        with contextlib.suppress(OSError):
            for entry in os.scandir(original):
                if entry.name != part:
                    (place / entry.name).symlink_to(entry.path)
        original, place = original / part, place / part
        if original != folder:
            place.mkdir()
    return place


class _Budget:
    """Bytes and files that may still be copied."""

    def __init__(self, size: int, files: int) -> None:
        self.size, self.files = size, files

    def takes(self, size: int) -> bool:
        """Return True if a file of this size may be copied, and count it."""
        if size > min(self.size, _LARGE_BYTES) or self.files <= 0:
            return False
        self.size -= size
        self.files -= 1
        return True


def _mirror(source: Path, target: Path, budget: _Budget) -> None:
    target.mkdir()
    files_first = sorted(os.scandir(source), key=lambda entry: (entry.is_dir(follow_symlinks=False), entry.name))
    for entry in files_first:
        place = target / entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name in _LINKED or budget.files <= 0:
                place.symlink_to(entry.path)
            else:
                try:
                    _mirror(Path(entry.path), place, budget)
                except PermissionError:
                    continue
        elif entry.is_file(follow_symlinks=False) and budget.takes(entry.stat().st_size):
            try:
                shutil.copy2(entry.path, place)
            except PermissionError:
                continue
        elif entry.is_symlink() or entry.is_file():
            place.symlink_to(os.path.realpath(entry.path))
