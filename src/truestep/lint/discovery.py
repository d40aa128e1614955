"""The files to check below folders: `.gitignore` files, the configuration and default names leave some out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

EXCLUDED = (
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".eggs", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    ".truestep_cache", "__pycache__", "__pypackages__", "node_modules", "site-packages", "build", "dist",
    ".ipynb_checkpoints",
)  # fmt: skip
"""Names of folders that are never read, unless they are named on the command line."""
_SUFFIXES = (".py", ".ipynb")


def files(paths: Sequence[Path], exclude: Iterable[str] = (), base: Path | None = None) -> Iterator[Path]:
    """Yield the files to check: each named file, and the Python files and notebooks below each named folder, sorted.

    Args:
        paths: files and folders that exist.
        exclude: patterns in the form of `.gitignore`, relative to the base.
        base: folder of the configuration; default: the working folder.
    """
    patterns = list(exclude)
    own = _Ignored(base or Path.cwd(), GitIgnoreSpec.from_lines(patterns)) if patterns else None
    seen: set[str] = set()
    for path in paths:
        found = [path] if not path.is_dir() else _below(path, [*_above(path), *([own] if own else [])])
        for one in found:
            key = os.path.realpath(one)
            if key not in seen:
                seen.add(key)
                yield one


class _Ignored:
    """Patterns of one file of patterns, and the folder that they are relative to."""

    def __init__(self, folder: Path, spec: GitIgnoreSpec) -> None:
        self._folder = os.path.abspath(folder)
        self._spec = spec

    def __call__(self, path: str, *, folder: bool) -> bool | None:
        """Return True if a path is left out, False if a pattern with "!" keeps it, None if no pattern matches."""
        relative = os.path.relpath(path, self._folder)
        if relative.startswith(".."):
            return None
        return self._spec.check_file(relative.replace(os.sep, "/") + ("/" if folder else "")).include


def _below(folder: Path, ignored: list[_Ignored]) -> Iterator[Path]:
    own = _patterns(folder)
    ignored = [*ignored, own] if own is not None else ignored
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        inner = entry.is_dir(follow_symlinks=False)
        if inner and entry.name in EXCLUDED:
            continue
        if not inner and not (entry.name.endswith(_SUFFIXES) and entry.is_file()):
            continue
        if _left_out(os.path.abspath(entry.path), ignored, folder=inner):
            continue
        if inner:
            yield from _below(Path(entry.path), ignored)
        else:
            yield Path(entry.path)


def _left_out(path: str, ignored: list[_Ignored], *, folder: bool) -> bool:
    for one in reversed(ignored):  # the nearest file of patterns decides
        verdict = one(path, folder=folder)
        if verdict is not None:
            return verdict
    return False


def _above(folder: Path) -> list[_Ignored]:
    """Return the patterns of the folders above, up to the one of the repository."""
    place = folder.absolute()
    if (place / ".git").exists():
        return []
    found: list[_Ignored] = []
    for above in place.parents:
        own = _patterns(above)
        if own is not None and not own(str(place), folder=True):  # a folder that is named is always read
            found.insert(0, own)
        if (above / ".git").exists():
            return found
    return []


def _patterns(folder: Path) -> _Ignored | None:
    try:
        with (folder / ".gitignore").open(encoding="utf-8", errors="replace") as lines:
            return _Ignored(folder, GitIgnoreSpec.from_lines(lines))
    except OSError:
        return None
