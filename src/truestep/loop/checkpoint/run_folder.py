"""The folder of a run: locked, and either new or resumed from one of its checkpoints.

The start of a run never deletes or overwrites logs: files of an earlier run without a checkpoint are moved to a
numbered folder in `earlier/`, and logs that are about to be truncated are copied there.
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
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk.files import discard, failures_of
from truestep.loop.checkpoint.disk.lock import FolderLock
from truestep.loop.checkpoint.listing import find, listed, numbered
from truestep.loop.checkpoint.remote.fetched import PREFIX, fetched
from truestep.loop.checkpoint.remote.mirror import Mirror
from truestep.loop.checkpoint.remote.opening import open_mirror
from truestep.loop.checkpoint.remote.storage import is_url
from truestep.loop.process.terminal import say
from truestep.loop.settings.settings import Settings

LOGS = ("metrics.jsonl", "alerts.jsonl", "system.jsonl")
PROVENANCE = ("settings.json", "environment.json", "changes.patch", "starts.jsonl")


class _Start(NamedTuple):
    """Start of a run: the checkpoint, and the path passed for it when the run was first started."""

    checkpoint: Checkpoint | None
    origin: str


class RunFolder:
    """The folder of a run, locked by this process.

    Attributes:
        path: the folder.
        checkpoints: its checkpoints.
        resumed: the checkpoint to start from; None for a new run.
    """

    def __init__(
        self,
        path: Path,
        checkpoints: Checkpoints,
        resumed: Checkpoint | None,
        held: ExitStack,
        mirror: Mirror | None,
    ) -> None:
        self.path = path
        self.checkpoints = checkpoints
        self.resumed = resumed
        self._held, self._mirror = held, mirror

    @property
    def continues(self) -> bool:
        """Return True if the run resumes from a checkpoint of this folder."""
        return self.resumed is not None and self.resumed.path.resolve().parent == self.checkpoints.folder.resolve()

    @classmethod
    def open(cls, out: Path, settings: Settings) -> Self:
        """Lock the folder, and find the checkpoint to start from.

        Args:
            out: the folder, which is created if it is missing.
            settings: settings of the run; `resume`, `mirror`, `keep_last` and `asynchronous` are used.

        Raises:
            FolderInUse: another run has locked it.
            FolderHoldsRun: it or its mirror holds checkpoints, and `resume` was not given or names another run.
            BadCheckpoint: all checkpoints in it are invalid, or `resume` is a path without a valid checkpoint.
            UnwritableFolder: it cannot be created or written.
            StorageUnavailable: the mirror cannot be read or written.
        """
        with ExitStack() as stack:
            stack.enter_context(FolderLock(out))
            for remains in out.glob(f"{PREFIX}*"):
                discard(remains)
            checkpoints = Checkpoints(
                out / "checkpoints", keep_last=settings.keep_last, asynchronous=settings.asynchronous
            )
            mirror = _mirror(out, checkpoints, settings)
            if mirror is not None:
                stack.callback(mirror.wait)
            start = _start(out, checkpoints, settings.resume, stack)
            checkpoints.origin = start.origin
            self = cls(out, checkpoints, start.checkpoint, stack.pop_all(), mirror)
            stack.push(self._held)
            if not self.continues and any((out / name).exists() for name in LOGS):
                aside = set_aside(out, (*LOGS, *PROVENANCE))
                say(f"truestep: the log of an earlier start in {out}, which saved no checkpoint, was moved to {aside}")
            stack.pop_all()
        return self

    def close(self) -> None:
        """Wait for the mirror, and release the lock on the folder."""
        try:
            if self._mirror is not None:
                self._mirror.close()
        finally:
            self._held.close()


def _mirror(out: Path, checkpoints: Checkpoints, settings: Settings) -> Mirror | None:
    """Open the mirror of a run; None if it has none, or in an experiment, which must not claim it."""
    if settings.mirror is None or os.environ.get("TRUESTEP_MIRRORING") == "0":
        return None
    resume = settings.resume
    if resume is None and numbered(checkpoints.folder):
        return None  # the folder is refused
    start = None if resume is None else "auto" if resume == "auto" else _origin(resume)
    if start in (_absolute(out), _absolute(checkpoints.folder)):
        start = "auto"
    return open_mirror(
        settings.mirror, checkpoints, start, [out / name for name in LOGS], make_room=lambda: set_aside(out, LOGS)
    )


def _start(out: Path, checkpoints: Checkpoints, resume: str | Path | None, held: ExitStack) -> _Start:
    """Return the start of a run, and raise an error for a checkpoint that holds only weights."""
    start = _found(out, checkpoints, resume, held)
    if start.checkpoint is not None and not start.checkpoint.world_size:
        raise BadCheckpoint(
            f"cannot resume from {start.checkpoint.path}: it holds evaluated weights, without the state of the run",
            expected="expected a checkpoint with optimizers, random states and the position in the data",
            remedy="pass init_from= to start a run with these weights, or resume= one of the step- folders beside it",
        )
    return start


def _found(out: Path, checkpoints: Checkpoints, resume: str | Path | None, stack: ExitStack) -> _Start:
    held = [path.name for path in numbered(checkpoints.folder)]
    if resume is None:
        if held:
            raise FolderHoldsRun(
                f"{out} already holds a run: {held[-1]}",
                expected="expected a new folder, or resume=",
                remedy='pass resume="auto" to resume it, or another out= for a new run',
            )
        return _Start(None, "")
    if resume == "auto":
        newest = checkpoints.newest()
        return _Start(newest, "" if newest is None else newest.manifest.origin)
    origin = _origin(resume)
    if origin in (_absolute(out), _absolute(checkpoints.folder)):
        return _Start(find(origin), "")
    inside = Path(origin).is_relative_to(_absolute(out))
    if not held and is_url(resume):  # read until the first loop has begun, by all ranks
        resume = stack.enter_context(fetched(str(resume), within=out))
    if not held:
        return _Start(find(resume), origin)
    finished = listed(checkpoints.folder)
    if (finished and finished[0].manifest.origin == origin) or not inside:
        own = checkpoints.newest()
        if own is None or own.manifest.origin != origin:
            raise FolderHoldsRun(
                f"{out} already holds another run: {held[-1]}",
                expected=f"expected a folder without checkpoints, or a run that was started from {resume}",
                remedy='pass another out= to start a run from there, or resume="auto" to resume this one',
            )
        say(
            f"truestep: {out} resumes from its own {own.path.name}, since it was already started from {resume}; "
            "to start from there again, pass another out="
        )
        return _Start(own, origin)
    found = find(resume)
    if not found.world_size:
        return _Start(found, origin)
    if finished[0].manifest.order != found.manifest.order:
        aside = set_aside(out, LOGS, copies=True)  # the logs are truncated to the older checkpoint
        kept = f"; copies of its logs are in {aside}" if aside is not None else ""
        say(f"truestep: {out} goes back from {finished[0].path.name} to {found.path.name}{kept}")
    return _Start(checkpoints.renew(found), origin)


def _origin(resume: str | Path) -> str:
    """Return the path or URL that a run starts from, as its checkpoints record it."""
    return str(resume).rstrip("/") if is_url(resume) else _absolute(Path(resume))


def _absolute(path: Path) -> str:
    """Return an absolute path that does not follow the last link, since `best` and `last` move."""
    return str(path.absolute().parent.resolve() / path.name)


def set_aside(out: Path, names: tuple[str, ...], *, copies: bool = False) -> Path | None:
    """Move or copy files of a run's folder into a new numbered folder in `earlier/`.

    Args:
        out: the folder of the run.
        names: names of the files; those that do not exist are skipped.
        copies: copy the files instead of moving them.

    Returns:
        The new folder; None if no file exists.
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
