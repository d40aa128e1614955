"""The checkpoints in a folder, newest or best first. Nothing is written."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from truestep.errors import BadCheckpoint, BrokenCheckpoint
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.disk.manifest import NAME, Manifest
from truestep.loop.process.stacklevel import outside

_NAME_OF_ONE = re.compile(r"step-\d{6,}")
_SHOWN = 3


class Judged(Protocol):
    """A checkpoint on the disk or in a mirror."""

    @property
    def manifest(self) -> Manifest:
        """Its description."""


One = TypeVar("One", bound=Judged)


def numbered(folder: Path) -> list[Path]:
    """Return the folders named like a checkpoint, valid or not, sorted by name."""
    return sorted(path for path in folder.glob("step-*") if _NAME_OF_ONE.fullmatch(path.name))


def evaluated(folder: Path) -> list[Checkpoint]:
    """Return the valid `evaluated-*` checkpoints in a folder: weights with their metric, and nothing else."""
    return [Checkpoint(path) for path in sorted(folder.glob("evaluated-*")) if is_whole(path)]


def listed(folder: Path, *, faults: list[BadCheckpoint] | None = None) -> list[Checkpoint]:
    """Return the finished checkpoints in a folder, newest first, by claim and count of saves (clocks can be wrong).

    Args:
        folder: a `checkpoints` folder.
        faults: list to which an error is appended for each invalid checkpoint.
    """
    found = []
    for path in numbered(folder):
        try:
            found.append(Checkpoint(path))
        except BadCheckpoint as error:
            if faults is not None:
                faults.append(error)
    return sorted(found, key=lambda checkpoint: checkpoint.manifest.order, reverse=True)


def first_sound(checkpoints: Iterable[Checkpoint], faults: list[BadCheckpoint]) -> Checkpoint | None:
    """Return the first checkpoint with correct checksums, and warn of each fault; None if there is none."""
    for checkpoint in checkpoints:
        try:
            checkpoint.verify()
        except BadCheckpoint as error:
            faults.append(error)
        else:
            for fault in faults:
                report(fault)
            return checkpoint
    return None


def refuse_remains(folder: Path, faults: Sequence[BadCheckpoint]) -> None:
    """Raise an error if all checkpoints in a folder are invalid: a new run would overwrite their remains.

    Raises:
        BadCheckpoint: gives the faults of the newest ones.
    """
    if not faults or len(faults) < len(numbered(folder)):
        return
    said = sorted((fault.happened.removeprefix("the checkpoint ") for fault in faults), reverse=True)[:_SHOWN]
    raise BadCheckpoint(
        f"all {len(faults)} checkpoints in {folder} are invalid, and nothing was changed there"
        if len(faults) > 1
        else f"the only checkpoint in {folder} is invalid, and nothing was changed there",
        expected="; ".join(text.replace(f"{folder}{os.sep}", "") for text in said),
        remedy="restore the files from a backup, pass resume= with another checkpoint, or out= for a new run elsewhere",
    )


def report(error: BadCheckpoint) -> None:
    warnings.warn(f"{error.happened}; it is left unchanged", BrokenCheckpoint, stacklevel=outside())


def by_metric(checkpoints: Iterable[One]) -> list[One]:
    """Return the checkpoints with a metric, best first; of equal ones, the newest first."""
    judged = [found for found in checkpoints if not math.isnan(_metric(found))]
    judged.sort(key=lambda found: found.manifest.order, reverse=True)
    sign = -1.0 if judged and judged[0].manifest.mode == "max" else 1.0
    return sorted(judged, key=lambda found: sign * _metric(found))


def _metric(found: Judged) -> float:
    return math.nan if found.manifest.metric is None else found.manifest.metric


def kept(whole: Sequence[One], judged: Sequence[One], keep_last: int) -> list[One]:
    """Return the checkpoints to keep, newest first: the last ones and the best.

    Args:
        whole: the checkpoints.
        judged: evaluated weights, which are kept only if they are the best.
        keep_last: number of newest checkpoints.
    """
    last = sorted(whole, key=lambda found: found.manifest.order, reverse=True)[:keep_last]
    best = by_metric([*whole, *judged])[:1]
    return [*last, *(found for found in best if found not in last)]


def find(path: Path | str) -> Checkpoint:
    """Return the checkpoint at a path, verified. Nothing is written.

    Args:
        path: a checkpoint; a folder of checkpoints or of a run, for the newest in it; or such a folder followed by
            `last` or `best`.

    Raises:
        BadCheckpoint: the checkpoint is missing or damaged.
    """
    path = Path(path)
    if (path / NAME).exists() or (path.is_dir() and path.name.startswith("step-")):
        checkpoint = Checkpoint(path.resolve() if path.is_symlink() else path)
        checkpoint.verify()
        return checkpoint
    named = path.name in ("last", "best") and not path.is_dir()
    folder = _folder_of(path.parent if named else path)
    if folder is not None:
        faults: list[BadCheckpoint] = []
        candidates = listed(folder, faults=faults)
        best = named and path.name == "best"
        found = first_sound(by_metric([*candidates, *evaluated(folder)]) if best else candidates, faults)
        if found is not None:
            return found
        refuse_remains(folder, faults)
    raise BadCheckpoint(
        f"no checkpoint at {path}",
        expected=f"expected a folder with a {NAME}, or the folder of a run, got {_what_is(path)}",
        remedy="pass the folder of a run, or one of the folders in its checkpoints/",
    )


def _folder_of(path: Path) -> Path | None:
    """Return the folder of checkpoints: the path itself, or `checkpoints` in it; None if neither has any."""
    for folder in (path / "checkpoints", path):
        if numbered(folder):
            return folder
    return None


def _what_is(path: Path) -> str:
    if not path.exists():
        return "nothing"
    if not path.is_dir():
        return "a file"
    return f"a folder with {', '.join(sorted(entry.name for entry in path.iterdir())[:5]) or 'nothing in it'}"


def is_whole(path: Path) -> bool:
    try:
        Checkpoint(path)
    except BadCheckpoint:
        return False
    return True
