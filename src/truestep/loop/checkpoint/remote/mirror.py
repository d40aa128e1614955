"""`Mirror`: the thread that copies finished checkpoints to a remote storage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Thread

from truestep.errors import MirrorBehind, MirrorTaken
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.listing import evaluated, kept, listed
from truestep.loop.checkpoint.remote.claim import Claim, TakenOver
from truestep.loop.checkpoint.remote.copies import Copies, Copy, name_of
from truestep.loop.process.stacklevel import outside
from truestep.loop.process.terminal import say


class Mirror:
    """Copies of the finished checkpoints of a run: the last ones and the best, as on the disk.

    A thread compares the storage with the disk after each save, uploads the newest missing checkpoint, and removes what
    neither the last nor the best are in the storage. It begins again until nothing is missing; so a slow storage gets
    the newest checkpoint, and those that the disk has replaced in the meantime are skipped. The thread ends with its
    work, and training never waits for it.

    Args:
        copies: the storage.
        claim: of this process on it.
        checkpoints: those on the disk.
        logs: logs of the run, uploaded with each checkpoint.
    """

    def __init__(self, copies: Copies, claim: Claim, checkpoints: Checkpoints, logs: Sequence[Path]) -> None:
        self.url = copies.storage.url
        self._copies, self._claim, self._checkpoints, self._logs = copies, claim, checkpoints, list(logs)
        self._lock = Lock()
        self._thread: Thread | None = None
        self._due = False
        self._failure = self._taken_by = ""
        self._told = False
        self._there: set[str] = set()
        """Names of the copies that the last look at the storage has found."""
        self._process = os.getpid()

    def copy(self) -> None:
        """Begin to copy new checkpoints; return at once."""
        with self._lock:
            self._due = True
            if self._thread is None and not self._taken_by:
                self._thread = Thread(target=self._work, name="truestep-mirror", daemon=False)
                self._thread.start()

    def wait(self) -> None:
        """Wait until no upload is under way; a forked child has none."""
        thread = self._thread
        if thread is not None and self._process == os.getpid():
            thread.join()

    def report(self) -> None:
        """Warn if uploads have failed since the last call, or if another run has taken the mirror over."""
        with self._lock:
            failure, self._failure = self._failure, ""
        if failure:
            self._warn_of(failure, "the next save tries again")
        if self._taken_by and not self._told:
            self._told = True
            warnings.warn(
                f"{self.url} was claimed by {self._taken_by}: this run copies no more checkpoints there; "
                f"it goes on, and its checkpoints are in {self._checkpoints.folder}",
                MirrorTaken,
                stacklevel=outside(),
            )

    def close(self) -> None:
        """Wait for the last upload, try once more if it has failed, and warn of checkpoints that are missing there."""
        if self._process != os.getpid():
            return
        if self._thread is not None and self._missing():
            say(f"truestep: uploading {', '.join(self._missing())} to {self.url}")
        self.wait()
        if self._failure:
            self._failure = ""
            self.copy()
            self.wait()
        failure, self._failure = self._failure, ""
        self._checkpoints.prune_pinned()
        self.report()
        if failure:
            self._warn_of(failure, f"copy them from {self._checkpoints.folder}, or resume this run to try again")

    def _warn_of(self, failure: str, remedy: str) -> None:
        missing = ", ".join(self._missing()) or "no checkpoint"
        warnings.warn(f"{self.url} lacks {missing}: {failure}; {remedy}", MirrorBehind, stacklevel=outside())

    def _missing(self) -> list[str]:
        """Return the names of the checkpoints on the disk that belong into the mirror and are not there."""
        whole, judged = self._on_disk()
        stays = kept(whole, judged, self._checkpoints.keep_last)
        return [one.path.name for one in stays if name_of(one.path, one.manifest) not in self._there]

    def _on_disk(self) -> tuple[list[Checkpoint], list[Checkpoint]]:
        folder = self._checkpoints.folder
        return listed(folder), evaluated(folder)

    # --- in the thread ---

    def _work(self) -> None:
        try:
            while True:
                with self._lock:
                    if not self._due:
                        self._thread = None
                        return
                    self._due = False
                self._failure = self._copied()
        except BaseException:
            self._thread = None
            raise

    def _copied(self) -> str:
        """Copy until nothing is missing; return the failure, or an empty text."""
        uploaded: set[str] = set()
        try:
            while name := self._copy_one():
                if name in uploaded:
                    raise OSError(f"{name} was uploaded, and the storage does not list it with the right size")
                uploaded.add(name)
        except TakenOver as taken:
            self._taken_by, self._due = str(taken), False
        except Exception as error:  # each storage has its own kinds
            said = str(error).strip().splitlines()
            return f"{type(error).__name__}: {(said or [''])[0][:200]}"
        return ""

    def _copy_one(self) -> str:
        """Remove superseded copies, and upload the newest missing checkpoint; return its name, "" if none is missing.

        Removals follow from the storage alone. So an upload that fails or is skipped leaves the one before it.
        """
        copies, checkpoints = self._copies, self._checkpoints
        found, remains = copies.look()
        self._claim.check()
        ours = [one for one in found if one.manifest.run in ("", self._claim.own.run)]
        sound = [one for one in ours if not one.fault and not one.is_plain]
        self._there = {one.name for one in sound}
        stays = _kept(sound, checkpoints.keep_last)
        whole, judged = self._on_disk()
        local = {name_of(one.path, one.manifest): one for one in [*whole, *judged]}
        for copy in found:
            superseded = copy not in stays and not copy.fault and not copy.is_plain
            broken = bool(copy.fault) and copy.name in local
            if superseded or broken:
                copies.remove(copy)
                self._there.discard(copy.name)
        for name in remains:
            copies.remove_remains(name)
        here = [_as_copy(name, one) for name, one in local.items()]
        wanted = _kept([*stays, *(one for one in here if one.name not in self._there)], checkpoints.keep_last)
        missing = [one for one in wanted if one.name not in self._there]
        if not missing:
            return ""
        name = missing[0].name
        path = local[name].path
        try:
            with checkpoints.pinned(path):
                copies.upload(path, self._logs, before_last=self._claim.check)
        except FileNotFoundError:
            if any(name_of(one.path, one.manifest) == name for part in self._on_disk() for one in part):
                raise  # the storage lacks something, not the disk
        else:
            self._there.add(name)
        return name


def _kept(copies: Sequence[Copy], keep_last: int) -> list[Copy]:
    """Return the copies to keep, newest first; of one step, as on the disk, only the newest counts."""
    newest: dict[str, Copy] = {}
    for one in sorted(copies, key=lambda one: one.manifest.order, reverse=True):
        newest.setdefault(one.local_name, one)
    whole = [one for one in newest.values() if not one.is_evaluated]
    return kept(whole, [one for one in newest.values() if one.is_evaluated], keep_last)


def _as_copy(name: str, checkpoint: Checkpoint) -> Copy:
    return Copy(name, checkpoint.manifest, "", ())
