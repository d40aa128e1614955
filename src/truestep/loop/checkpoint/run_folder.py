"""The folder of a run: locked, and either new or continued from one of its checkpoints.

Starting a run deletes and overwrites nothing of the user's: files of an earlier run that saved no checkpoint, and logs
that are about to be cut back, are moved or copied to `earlier/`, numbered.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

from truestep.errors import BadCheckpoint, FolderHoldsRun
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints, find, listed, numbered
from truestep.loop.checkpoint.files import failures_of
from truestep.loop.checkpoint.lock import FolderLock
from truestep.loop.process.terminal import say
from truestep.loop.settings.settings import Settings

LOGS = ("metrics.jsonl", "alerts.jsonl", "system.jsonl")
PROVENANCE = ("settings.json", "environment.json", "changes.patch", "starts.jsonl")


class _Start(NamedTuple):
    """Where a run starts: the checkpoint, and the path that was given for it when the run was begun."""

    checkpoint: Checkpoint | None
    origin: str


class RunFolder:
    """A run's folder while the run holds it.

    Attributes:
        path: the folder.
        checkpoints: its checkpoints.
        resumed: the checkpoint to start from; None for a new run.
    """

    def __init__(self, path: Path, checkpoints: Checkpoints, resumed: Checkpoint | None, lock: FolderLock) -> None:
        self.path = path
        self.checkpoints = checkpoints
        self.resumed = resumed
        self._lock = lock

    @property
    def goes_on(self) -> bool:
        """Return True if the run continues from a checkpoint of this folder."""
        return self.resumed is not None and self.resumed.path.resolve().parent == self.checkpoints.folder.resolve()

    @classmethod
    def open(cls, out: Path, settings: Settings) -> Self:
        """Lock the folder, and find what to start from.

        Args:
            out: the folder, which is made if it is missing.
            settings: `resume`, `keep_last` and `asynchronous` of them.

        Raises:
            FolderInUse: another run holds it.
            FolderHoldsRun: it holds checkpoints, and `resume` was not given or names another run.
            BadCheckpoint: there are checkpoints and none is whole, or `resume` is a path without a whole checkpoint.
            UnwritableFolder: it cannot be made or written.
        """
        with ExitStack() as stack:
            lock = stack.enter_context(FolderLock(out))
            checkpoints = Checkpoints(
                out / "checkpoints", keep_last=settings.keep_last, asynchronous=settings.asynchronous
            )
            start = _start(out, checkpoints, settings.resume)
            checkpoints.origin = start.origin
            self = cls(out, checkpoints, start.checkpoint, lock)
            if not self.goes_on and any((out / name).exists() for name in LOGS):
                aside = set_aside(out, (*LOGS, *PROVENANCE))
                say(f"truestep: the log of an earlier start in {out}, which saved no checkpoint, is in {aside}")
            stack.pop_all()
        return self

    def close(self) -> None:
        """Let others have the folder."""
        self._lock.release()


def _start(out: Path, checkpoints: Checkpoints, resume: str | Path | None) -> _Start:
    """Return what a run starts from."""
    start = _found(out, checkpoints, resume)
    if start.checkpoint is not None and not start.checkpoint.world_size:
        raise BadCheckpoint(
            f"{start.checkpoint.path} holds the weights that were evaluated, in the middle of a step, and no more",
            expected="a checkpoint with optimizers, random states and the position in the data",
            remedy="pass init_from= to begin a run with these weights, or resume= one of the step- folders beside it",
        )
    return start


def _found(out: Path, checkpoints: Checkpoints, resume: str | Path | None) -> _Start:
    held = [path.name for path in numbered(checkpoints.folder)]
    if resume is None:
        if held:
            raise FolderHoldsRun(
                f"{out} holds a run already: {held[-1]}",
                expected="a new folder, or resume=",
                remedy='pass resume="auto" to go on with it, or another out= for a new run',
            )
        return _Start(None, "")
    if resume == "auto":
        newest = checkpoints.newest()
        return _Start(newest, "" if newest is None else newest.manifest.origin)
    origin = _absolute(Path(resume))
    if origin in (_absolute(out), _absolute(checkpoints.folder)):
        return _Start(find(origin), "")
    inside = Path(origin).is_relative_to(_absolute(out))
    if not held:
        return _Start(find(resume), origin)
    finished = listed(checkpoints.folder)
    if (finished and finished[0].manifest.origin == origin) or not inside:
        own = checkpoints.newest()
        if own is None or own.manifest.origin != origin:
            raise FolderHoldsRun(
                f"{out} holds another run already: {held[-1]}",
                expected=f"a folder without checkpoints, or a run that was begun from {resume}",
                remedy='pass another out= to begin a run from there, or resume="auto" to go on with this one',
            )
        say(
            f"truestep: {out} goes on with its own {own.path.name}, since it was begun from {resume} already; "
            "to begin from there again, pass another out="
        )
        return _Start(own, origin)
    found = find(resume)
    if not found.world_size:
        return _Start(found, origin)
    if finished[0].manifest.save != found.manifest.save:
        aside = set_aside(out, LOGS, copies=True)  # what was logged after the older checkpoint is cut off
        kept = f"; copies of its logs are in {aside}" if aside is not None else ""
        say(f"truestep: {out} goes back from {finished[0].path.name} to {found.path.name}{kept}")
    return _Start(checkpoints.renew(found), origin)


def _absolute(path: Path) -> str:
    """Return an absolute path that does not follow the last link, since `best` and `last` move."""
    return str(path.absolute().parent.resolve() / path.name)


def set_aside(out: Path, names: tuple[str, ...], *, copies: bool = False) -> Path | None:
    """Move files of a run's folder, or copies of them, into a new folder in `earlier/`.

    Args:
        out: the folder of the run.
        names: of the files; those that do not exist are left out.
        copies: whether to leave the files in their place and copy them.

    Returns:
        The new folder; None if there is no such file.
    """
    present = [name for name in names if (out / name).exists()]
    if not present:
        return None
    with failures_of(out):
        aside = next(path for number in count(1) if not (path := out / "earlier" / f"{number:03d}").exists())
        aside.mkdir(parents=True)
        for name in present:
            if copies:
                shutil.copy2(out / name, aside / name)
            else:
                os.replace(out / name, aside / name)
    return aside
