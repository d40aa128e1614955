"""Limits of the kernel's control groups, by which containers and batch systems limit processors and memory.

Versions 1 and 2 are read. A limit applies to all groups below it, so every group from this process up to the mount
counts.

Source: documentation of the kernel, admin-guide/cgroup-v1 and admin-guide/cgroup-v2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_NO_LIMIT = 2**60
"""Version 1 writes "no limit" as a number near 2**63."""


def quota(root: Path = Path("/")) -> float | None:
    """Return the quota of CPU time of this process, in processors; None without a quota.

    Args:
        root: root of the file system; tests pass another one.
    """
    found: list[float] = []
    for group in _groups("cpu", root):
        if (share := _words(group / "cpu.max")) and share[0] != "max" and len(share) == 2:
            found.append(int(share[0]) / int(share[1]))
        spent, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        if spent is not None and period and spent > 0:
            found.append(spent / period)
    return min(found, default=None)


def memory(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Return the limit of memory and the free memory below it, in bytes, of the group with the least free memory.

    The reclaimable file cache of a group counts as free.
    """
    tightest: tuple[int | None, int | None] = (None, None)
    for group in _groups("memory", root):
        for limit_file, used_file, dropped in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit, used = _number(group / limit_file), _number(group / used_file)
            if limit is None or limit >= _NO_LIMIT:
                continue
            free = None if used is None else max(0, limit - max(0, used - _statistic(group, dropped)))
            known = limit if free is None else free
            if tightest[0] is None or known < (tightest[0] if tightest[1] is None else tightest[1]):
                tightest = (limit, free)
    return tightest


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups, from its own up to the mount of the hierarchy."""
    for mounted, shown, names in _mounts(root):
        own = _own_group(controller if names else "", root)
        if (names and controller not in names) or own is None:
            continue
        try:
            inner = PurePosixPath(own).relative_to(shown)
        except ValueError:
            inner = PurePosixPath()  # a container sees its host's group names, but its own group as the mount
        folder = mounted / inner
        while folder != mounted:
            if folder.is_dir():
                yield folder
            folder = folder.parent
        yield mounted


def _mounts(root: Path) -> Iterator[tuple[Path, str, frozenset[str]]]:
    """Yield the mount points of hierarchies, the group mounted there, and the controllers of version 1."""
    for words in mounts(root):
        shown, place, kind, options = words
        where = root / place.lstrip("/")
        if kind == "cgroup2":
            yield where, shown, frozenset()
        elif kind == "cgroup":
            yield where, shown, frozenset(options.split(","))


def mounts(root: Path = Path("/")) -> Iterator[tuple[str, str, str, str]]:
    """Yield the mounts as (root within the file system, mount point, type, options)."""
    try:
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        place, kind = before.split(), after.split()
        if len(place) >= 6 and len(kind) >= 3:
            yield _opened(place[3]), _opened(place[4]), kind[0], f"{place[5]},{kind[2]}"


def _opened(word: str) -> str:
    """Return a name with the kernel's octal escapes decoded."""
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(code, sign)
    return word


def _own_group(controller: str, root: Path) -> str | None:
    """Return the group of this process in the hierarchy of a controller (version 1), or in version 2 for ""."""
    try:
        text = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if controller in names.split(","):
            return path
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    words = _words(path)
    try:
        return int(words[0])
    except (IndexError, ValueError):
        return None


def _statistic(group: Path, name: str) -> int:
    words = _words(group / "memory.stat")
    return int(words[words.index(name) + 1]) if name in words else 0
