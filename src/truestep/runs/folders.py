"""Find the runs below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_SKIPPED = ("checkpoints", "earlier", "node_modules", "__pycache__", "site-packages", "venv")
_DEEPEST = 6
_MOST_FOLDERS = 20_000


def runs_below(folder: Path) -> list[Path]:
    """Return the folders of runs at or below a folder, in the order of their names; hidden folders are left out.

    Args:
        folder: where to look, at most six levels deep.
    """
    return sorted(islice(_runs(folder, _DEEPEST), _MOST_FOLDERS))


def kind_of(folder: Path) -> str:
    """Return "run" for the folder of a `truestep.Run`, "record" for a record of ``truestep run --record``, else ""."""
    if (folder / "settings.json").is_file() and (folder / "environment.json").is_file():
        return "run"
    return "record" if (folder / "rank-0.jsonl").is_file() else ""


def _runs(folder: Path, levels: int) -> Iterator[Path]:
    if kind_of(folder):
        yield folder
        return
    if not levels:
        return
    try:
        inner = [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for path in inner:
        if not path.name.startswith(".") and path.name not in _SKIPPED:
            yield from _runs(path, levels - 1)
