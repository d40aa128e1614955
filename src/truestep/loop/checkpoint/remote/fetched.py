"""A local copy of the content of a URL: a checkpoint, the newest or best one of a run, or a file of weights."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truestep.errors import BadCheckpoint, StorageUnavailable, TrueStepError
from truestep.loop.checkpoint.disk.manifest import NAME
from truestep.loop.checkpoint.listing import by_metric, report
from truestep.loop.checkpoint.remote.copies import FOLDER, Copies
from truestep.loop.checkpoint.remote.storage import Storage

PREFIX = ".truestep-fetched-"


@contextmanager
def fetched(url: str, within: Path | None = None) -> Iterator[Path]:
    """Context manager: download the content of a URL into a temporary folder, which is removed afterwards.

    Args:
        url: a checkpoint; a run or its mirror, for the newest checkpoint; either followed by `last` or `best`; a file.
        within: where to make the temporary folder, with a name that begins with `PREFIX`; None for that of the system.

    Yields:
        The path of the verified checkpoint, or of the file.

    Raises:
        PackageMissing: fsspec or its package for this kind of storage is not installed.
        BadSettings: the URL is of no known kind.
        StorageUnavailable: the storage cannot be read.
        BadCheckpoint: nothing is there, or the checkpoint is damaged.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
    try:
        try:
            path = _downloaded(url.rstrip("/"), folder)
        except TrueStepError:
            raise
        except Exception as error:  # each storage has its own kinds
            said = str(error).strip().splitlines()
            raise StorageUnavailable(
                f"{url} cannot be read: {type(error).__name__}: {(said or [''])[0][:200]}",
                expected="expected a storage that this process can list and read",
                remedy="check the URL and the credentials",
            ) from error
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _downloaded(url: str, folder: Path) -> Path:
    above, _, last = url.rpartition("/")
    if above.endswith(":/"):  # only the name of a bucket
        above, last = url, ""
    if last and Storage(above).has(last):
        Storage(above).download(last, folder / last)
        return folder / last
    named = last in ("last", "best")
    run, faults = Storage(above if named else url), list[BadCheckpoint]()
    for below in (FOLDER, ""):
        found, _ = Copies(run, below).look()
        usable = [one for one in found if not one.is_evaluated]
        for copy in by_metric(found) if named and last == "best" else usable:
            try:
                Copies(run, below).download(copy, folder / copy.local_name)
            except BadCheckpoint as error:
                faults.append(error)
            else:
                for fault in faults:
                    report(fault)
                return folder / copy.local_name
    if faults:
        raise faults[0]
    beside = Copies(Storage(above), "")
    one = beside.one(last)
    if one is not None:
        beside.download(one, folder / one.local_name)
        return folder / one.local_name
    raise BadCheckpoint(
        f"no checkpoint at {url}",
        expected=f"expected a folder with a {NAME}, the mirror of a run, or a file",
        remedy="pass the URL of a mirror, of one of the folders in its checkpoints/, or of a file of weights",
    )
