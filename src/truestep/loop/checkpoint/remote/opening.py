"""The start of a run with a mirror: refusals, the claim, and the download to resume from.

The mirror is listed before it is claimed, since a run that is refused must not take it over, and once more afterwards:
from then on, its former owner uploads no manifest.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from truestep.errors import BadCheckpoint, BadSettings, FolderHoldsRun, StorageUnavailable, TrueStepError
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk import files
from truestep.loop.checkpoint.listing import by_metric, listed, report
from truestep.loop.checkpoint.remote.claim import Claim, owner_of
from truestep.loop.checkpoint.remote.copies import Copies, Copy
from truestep.loop.checkpoint.remote.mirror import Mirror
from truestep.loop.checkpoint.remote.storage import Storage
from truestep.loop.process.terminal import say


def open_mirror(
    url: str, checkpoints: Checkpoints, start: str | None, logs: Sequence[Path], *, make_room: Callable[[], object]
) -> Mirror:
    """Claim a mirror, and download its newest checkpoint if it is newer than those on the disk.

    Args:
        url: of the mirror.
        checkpoints: those on the disk; get the name of the run and the number of the claim.
        start: None for a new run, "auto" to resume the newest checkpoint, or the path that the run starts from.
        logs: logs of the run.
        make_room: called before logs are downloaded, to move other logs away.

    Raises:
        PackageMissing: fsspec or its package for this kind of storage is not installed.
        BadSettings: the URL is of no known kind, or is the folder of the run.
        StorageUnavailable: it cannot be read or written.
        FolderHoldsRun: it holds the checkpoints of another run.
        BadCheckpoint: there are checkpoints in it, and all are damaged.
    """
    storage = Storage(url)
    here = checkpoints.folder.parent.resolve()
    if storage.path is not None and storage.path.is_relative_to(here):
        raise BadSettings(
            f"mirror is in the folder of the run: {url}",
            expected="expected another place, which outlives the disk of the run",
            remedy="pass the URL of another folder or storage, or leave mirror out",
        )
    try:
        return _opened(storage, checkpoints, start, logs, make_room)
    except TrueStepError:
        raise
    except Exception as error:  # each storage has its own kinds
        said = str(error).strip().splitlines()
        raise StorageUnavailable(
            f"the mirror {url} cannot be used: {type(error).__name__}: {(said or [''])[0][:200]}",
            expected="expected a storage that this process can list, read and write",
            remedy="check the URL, that its bucket exists and the credentials, or leave mirror out",
        ) from error


def _opened(
    storage: Storage,
    checkpoints: Checkpoints,
    start: str | None,
    logs: Sequence[Path],
    make_room: Callable[[], object],
) -> Mirror:
    copies = Copies(storage)
    found, _ = copies.look()
    local, owner = listed(checkpoints.folder), owner_of(storage)
    run = owner.run if owner is not None else found[0].manifest.run if found else ""
    held = _of_run(found, run)
    if held:
        _refuse(storage, held, local, checkpoints.run == run != "", start)
    else:
        run = checkpoints.run
    claims = [*(one.manifest.claim for one in found), *(one.manifest.claim for one in local)]
    claim = Claim(storage, max([0 if owner is None else owner.claim, *claims]) + 1, run or secrets.token_hex(8))
    if held and (not local or start == "auto"):
        _resume(copies, checkpoints, local, run, logs, make_room)
    checkpoints.run, checkpoints.claim = claim.own.run, claim.own.claim
    mirror = Mirror(copies, claim, checkpoints, logs)
    checkpoints.copier = mirror
    if held or local:
        mirror.copy()
    return mirror


def _of_run(found: list[Copy], run: str) -> list[Copy]:
    """Return the checkpoints of a run, newest first, without evaluated weights."""
    return [one for one in found if one.manifest.run in ("", run) and not one.is_evaluated]


def _refuse(storage: Storage, held: list[Copy], local: list[Checkpoint], is_same: bool, start: str | None) -> None:
    """Raise an error if the run is not the one in the mirror."""
    newest = held[0]
    if start is None:
        raise FolderHoldsRun(
            f"the mirror {storage.url} already holds a run: {newest.local_name}",
            expected="expected a storage without checkpoints, or resume=",
            remedy='pass resume="auto" to resume it, or another mirror= for a new run',
        )
    if is_same if local else start in ("auto", newest.manifest.origin):
        return
    raise FolderHoldsRun(
        f"the mirror {storage.url} already holds another run: {newest.local_name}",
        expected="expected a storage without checkpoints, or with those of this run",
        remedy='pass another mirror= for this run, or another out= with resume="auto" to resume the run in the mirror',
    )


def _resume(
    copies: Copies,
    checkpoints: Checkpoints,
    local: list[Checkpoint],
    run: str,
    logs: Sequence[Path],
    make_room: Callable[[], object],
) -> None:
    """Download the newest sound checkpoint, and the best one, unless those on the disk are as new."""
    found, _ = copies.look()
    folder, faults = checkpoints.folder, list[BadCheckpoint]()
    newer = [one for one in _of_run(found, run) if not local or one.manifest.order > local[0].manifest.order]

    def logs_of(copy: Copy) -> None:
        make_room()
        copies.download_logs(copy, logs)

    for copy in newer:
        try:
            copies.download(copy, folder / copy.local_name, before_last=partial(logs_of, copy))
        except BadCheckpoint as error:
            faults.append(error)
            continue
        for fault in faults:
            report(fault)
        files.relink(folder / "last", copy.local_name)
        say(f"truestep: {folder.parent} goes on from {copy.local_name} of {copies.storage.url}")
        _bring_best(copies, [one for one in found if one.manifest.run in ("", run)], folder)
        break
    else:
        if newer and not local:
            raise BadCheckpoint(
                f"all {len(newer)} checkpoints in {copies.storage.url} are invalid, and nothing was changed there",
                expected="; ".join(fault.happened for fault in faults[:3]),
                remedy="pass resume= with another checkpoint and another mirror=, or start a new run elsewhere",
            )
        for fault in faults:
            report(fault)
    checkpoints.look()


def _bring_best(copies: Copies, found: list[Copy], folder: Path) -> None:
    """Download the checkpoint with the best metric, so that the disk keeps it too."""
    for best in by_metric(found)[:1]:
        final = folder / best.local_name
        if not final.exists():
            try:
                copies.download(best, final)
            except BadCheckpoint as error:
                report(error)
                return
        files.relink(folder / "best", best.local_name)
