"""The folder of a run: locked, and either new or taken up where it was."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from truestep.errors import FolderHoldsRun
from truestep.loop.checkpoint import Checkpoint
from truestep.loop.checkpoints import Checkpoints, find
from truestep.loop.lock import FolderLock
from truestep.loop.settings import Settings


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

    @classmethod
    def open(cls, out: Path, settings: Settings) -> Self:
        """Lock the folder, and find what to start from.

        Args:
            out: the folder, which is made if it is missing.
            settings: `resume`, `keep_last` and `asynchronous` of them.

        Raises:
            FolderInUse: another run holds it.
            FolderHoldsRun: it holds checkpoints, and `resume` was not given.
            BadCheckpoint: `resume` is a path where no whole checkpoint is.
            UnwritableFolder: it cannot be made or written.
        """
        with ExitStack() as stack:
            lock = stack.enter_context(FolderLock(out))
            folder = out / "checkpoints"
            resumed = None
            if settings.resume not in (None, "auto"):
                resumed = find(Path(settings.resume))
            checkpoints = Checkpoints(folder, keep_last=settings.keep_last, asynchronous=settings.asynchronous)
            own = resumed is not None and resumed.path.resolve().parent == folder.resolve()
            if settings.resume == "auto":
                resumed = checkpoints.newest()
            elif resumed is not None and own:
                resumed = checkpoints.renew(resumed)
            elif settings.resume is None and (held := sorted(path.name for path in folder.glob("step-*"))):
                raise FolderHoldsRun(
                    f"{out} holds a run already: {held[-1]}",
                    expected="a new folder, or resume=",
                    remedy='pass resume="auto" to go on with it, or another out= for a new run',
                )
            if resumed is None or (settings.resume != "auto" and not own):
                for name in ("metrics.jsonl", "alerts.jsonl", "system.jsonl"):
                    (out / name).unlink(missing_ok=True)  # of a run that never saved, or that this one is not
            stack.pop_all()
        return cls(out, checkpoints, resumed, lock)

    def close(self) -> None:
        """Let others have the folder."""
        self._lock.release()
