"""Atomic and durable folders: complete or absent, whenever the process or the machine stops.

This follows from the order of operations: each file is written and flushed to the disk (`fsync`), then the folder that
lists the files is flushed, then it is renamed to its final name (atomic), then its parent folder is flushed. A folder
is never emptied under its final name: it is renamed to a trash name first.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from truestep.errors import DiskFull, TrueStepError, UnwritableFolder

_BUFFER = 2**20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_MARGIN = 4 * 2**20
_OURS = re.compile(r"\.tmp-[a-z]+-\d{6,}|\.trash-[a-z]+-\d{6,}-[0-9a-f]{8}")
"""Names given to checkpoints by `temporary` and `_to_trash`; folders with other names are the user's."""


class DurableFile:
    """A new file that is flushed to the disk on exit, and counts its size and checksum.

    The checksum is CRC-32. It detects flipped bits and truncated files, not attacks, and is the fastest checksum of the
    standard library on any machine (2.2 GB/s here; SHA-256 1.4 GB/s with processor support, 0.4 without).

    Args:
        path: path of the file, which must not exist yet.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with DurableFile(Path(folder) / "a.txt") as file:
        ...         written = file.write(b"123456789")
        ...     file.bytes, file.crc32
        (9, 'cbf43926')
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._crc = 0
        self._failed: OSError | None = None
        self._file = path.open("xb", buffering=_BUFFER)

    @property
    def crc32(self) -> str:
        """Checksum of the bytes written so far: eight hexadecimal digits."""
        return f"{self._crc:08x}"

    def write(self, data: bytes | memoryview, /) -> int:
        """Write all of the bytes; return their number."""
        try:
            self._file.write(data)
        except OSError as error:
            self._failed = error
            raise
        self._crc = zlib.crc32(data, self._crc)
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Pass buffered bytes to the operating system."""
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            try:
                self._file.close()
            except OSError:
                if error is None:
                    raise
        if self._failed is not None and error is not self._failed:
            raise self._failed from error  # torch.save replaces it by a RuntimeError about file positions


def crc32_of(path: Path) -> str:
    """Return the CRC-32 of a file, in the form of `DurableFile.crc32`."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(_BUFFER):
            crc = zlib.crc32(data, crc)
    return f"{crc:08x}"


def flush_file(path: Path) -> None:
    """Flush a file that another library wrote to the disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the list of files of a folder to the disk."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and flush their parents to the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        flush_folder(path.parent)


def publish(temporary: Path, final: Path) -> None:
    """Rename a finished folder to its final name, replacing an older folder of that name.

    Args:
        temporary: a folder beside `final`, with all files flushed to the disk.
        final: the final path.
    """
    flush_folder(temporary)
    trash = _to_trash(final) if final.exists() else None
    try:
        os.rename(temporary, final)
    except BaseException:
        if trash is not None and not final.exists():
            os.rename(trash, final)
        raise
    flush_folder(final.parent)
    if trash is not None:
        shutil.rmtree(trash, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder; it is never visible half-empty under its name."""
    trash = _to_trash(folder)
    flush_folder(folder.parent)
    shutil.rmtree(trash, ignore_errors=True)


def _to_trash(folder: Path) -> Path:
    trash = folder.with_name(f".trash-{folder.name}-{secrets.token_hex(4)}")
    os.rename(folder, trash)
    return trash


def discard(folder: Path) -> None:
    """Remove an unfinished folder, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


def temporary(final: Path) -> Path:
    """Return the temporary path under which a folder is written."""
    return final.with_name(f".tmp-{final.name}")


def sweep(parent: Path, is_whole: Callable[[Path], bool]) -> None:
    """Remove the remains of a killed process: unfinished folders, and trash.

    Complete trash is restored if its name is free: the process was killed between renaming the old folder and the new.

    Args:
        parent: the folder to clean; only its owner may do so.
        is_whole: returns True if a folder is complete.
    """
    for path in sorted(path for path in parent.glob(".trash-*") if _OURS.fullmatch(path.name)):
        final = parent / path.name.removeprefix(".trash-").rpartition("-")[0]
        if not final.exists() and is_whole(path):
            os.rename(path, final)
        else:
            shutil.rmtree(path, ignore_errors=True)
    for path in parent.glob(".tmp-*"):
        if _OURS.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    for path in parent.glob(".link-*"):
        path.unlink(missing_ok=True)


def relink(link: Path, target: str) -> None:
    """Point a link to a sibling, atomically; where links are not possible, write a file with the name of the sibling.

    Args:
        link: the link; a link or file of that name is replaced.
        target: name of the sibling.
    """
    fresh = link.with_name(f".link-{link.name}-{secrets.token_hex(4)}")
    try:
        fresh.symlink_to(target, target_is_directory=True)
    except (OSError, NotImplementedError):
        fresh.write_text(target + "\n", encoding="utf-8")
    os.replace(fresh, link)


def require_space(folder: Path, needed: int) -> None:
    """Raise an error if a disk has too little space.

    Args:
        folder: a folder on the disk.
        needed: size of the files to write, in bytes; a margin of 4 MiB and 2 % is added.

    Raises:
        DiskFull: gives the needed and the free space.
    """
    needed += _MARGIN + needed // 50
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise _full(folder, f"needed {_megabytes(needed)}, free {_megabytes(free)}")


@contextmanager
def failures_of(folder: Path) -> Iterator[None]:
    """Context manager: replace the OSError of a full disk or an unwritable folder by an error of truestep.

    Args:
        folder: the folder that is written to.

    Raises:
        DiskFull: the disk is full.
        UnwritableFolder: the folder or the disk is read-only.
    """
    try:
        yield
    except TrueStepError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise _full(folder, f"{error.strerror}; free {_megabytes(shutil.disk_usage(folder).free)}") from error
        if error.errno in _FORBIDDEN:
            raise unwritable(folder, error) from error
        raise


def unwritable(folder: Path, error: OSError) -> UnwritableFolder:
    """Return the error for a folder that cannot be written, with the reason."""
    return UnwritableFolder(
        f"cannot write into {folder}: {error.strerror}", remedy="pass another folder, or make this one writable"
    )


def _full(folder: Path, numbers: str) -> DiskFull:
    return DiskFull(
        f"the checkpoint does not fit on the disk of {folder}",
        expected=numbers,
        remedy="free some space, keep fewer checkpoints, or pass another folder; earlier checkpoints are intact",
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
