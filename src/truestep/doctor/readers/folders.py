"""Folders that a training writes to: space, type of file system, and a test by writing a file."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from pathlib import Path, PurePosixPath

from truestep.doctor.facts import Folder
from truestep.doctor.readers import cgroups

_PROBE = 8 * 2**20
_NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "pvfs2"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs"),
    *("fuse.mount-s3", "fuse.blobfuse2", "panfs", "wekafs", "orangefs"),
}


def folder(role: str, path: Path) -> Folder:
    """Return the facts about a folder, or about its nearest existing parent if it does not exist yet.

    Writes an anonymous file of 8 MiB, which is removed when it is closed.
    """
    try:
        asked = place = path.absolute()
    except FileNotFoundError:
        return Folder(role=role, path=_shown(path), failure="the working folder was removed")
    while not os.path.isdir(place) and place != place.parent:
        if os.path.exists(place):
            return Folder(role=role, path=_shown(asked), failure=f"{_shown(place)} is a file")
        place = place.parent
    total = free = files_free = None
    try:
        usage = shutil.disk_usage(place)
        total, free = (usage.total, usage.free) if usage.total else (None, None)  # as in /proc
        if hasattr(os, "statvfs"):
            state = os.statvfs(place)
            files_free = state.f_favail if state.f_files else None
    except OSError:
        pass
    kind = file_system(place)
    speed, failure, read_only = _written(place)
    return Folder(
        role=role,
        path=_shown(asked),
        total=total,
        free=free,
        files_free=files_free,
        system=kind,
        network=kind in _NETWORK,
        failure=failure,
        read_only=read_only,
        write_speed=speed,
    )


def temporary() -> Folder:
    """Return the facts about the folder for temporary files; Python finds no such folder if it can write to none."""
    try:
        return folder("temporary", Path(tempfile.gettempdir()))
    except FileNotFoundError as error:
        return Folder(role="temporary", path=os.environ.get("TMPDIR", "/tmp"), failure=_said(error))


def file_system(path: Path, root: Path = Path("/")) -> str | None:
    """Return the type of a folder's file system; None if the kernel does not list mounts."""
    place = PurePosixPath(os.path.realpath(path))
    best, kind = -1, None
    for _, where, name, _ in cgroups.mounts(root):
        depth = len(PurePosixPath(where).parts)
        if place.is_relative_to(where) and depth >= best:  # the last mount at a place hides earlier ones
            best, kind = depth, name
    return kind


def _shown(path: Path) -> str:
    """Return a path as text that can be printed: file names can hold bytes that are not text."""
    return os.fsencode(path).decode("utf-8", "replace")


def _written(place: Path) -> tuple[float | None, str | None, bool]:
    """Return bytes per second, the reason of a failure to write, and True if the file system is read-only."""
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            left = memoryview(os.urandom(_PROBE))  # compressing file systems would not write zeros
            start = time.perf_counter()
            while left:
                left = left[file.write(left) or 0 :]
            os.fsync(file.fileno())
            return _PROBE / (time.perf_counter() - start), None, False
    except OSError as error:
        return None, _said(error), error.errno == errno.EROFS


def _said(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
