"""The checkpoints in a mirror, and the download of one of them.

checkpoints/step-000120-2-6/    the copy of step-000120, the sixth save, made under the second claim
                            model.safetensors, ...   under the names that they have on the disk
                            metrics.jsonl            the logs at that time
                            manifest.json            uploaded last and removed first
owner.json                      the claim

Each save has another name, so a complete copy is never overwritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.disk import files
from truestep.loop.checkpoint.disk.manifest import NAME, BadManifest, Manifest
from truestep.loop.checkpoint.remote.storage import Storage

FOLDER = "checkpoints"
_OURS = re.compile(r"(step|evaluated)-\d{6,}-\d+-\d+")
_ANY = re.compile(r"(step|evaluated)-\d{6,}(-\d+-\d+)?")
"""Also folders of a run that were copied by other means."""
_LOG = re.compile(r"[a-z]+\.jsonl")


def name_of(path: Path, manifest: Manifest) -> str:
    """Return the name that a checkpoint on the disk has in a mirror.

    Example:
        >>> manifest = Manifest(step=120, epoch=0, save=6, metric=None, mode="min", claim=2)
        >>> name_of(Path("runs/lab/checkpoints/step-000120"), manifest)
        'step-000120-2-6'
    """
    return f"{path.name}-{manifest.claim}-{manifest.save}"


@dataclass(frozen=True)
class Copy:
    """A finished checkpoint in a mirror.

    Attributes:
        name: of its folder.
        manifest: its description.
        fault: a file that is missing or has another size, in words; empty if there is none.
        logs: names of the logs beside it.
    """

    name: str
    manifest: Manifest
    fault: str
    logs: tuple[str, ...]

    @property
    def is_evaluated(self) -> bool:
        """Return True for weights with their metric, without the state of the run."""
        return self.name.startswith("evaluated-")

    @property
    def is_plain(self) -> bool:
        """Return True for a folder that was copied by other means, which a mirror never removes."""
        return not _OURS.fullmatch(self.name)

    @property
    def local_name(self) -> str:
        """Name of its folder on the disk."""
        return "-".join(self.name.split("-")[:2])


class Copies:
    """The checkpoints in a storage.

    Args:
        storage: the mirror of a run.
        folder: the folder of its checkpoints.
    """

    def __init__(self, storage: Storage, folder: str = FOLDER) -> None:
        self.storage = storage
        self.folder = folder
        self._known: dict[tuple[str, int], Manifest] = {}

    def look(self) -> tuple[list[Copy], list[str]]:
        """List the storage.

        Returns:
            The finished copies, newest first, and the names of unfinished ones, which a killed process left.
        """
        held: dict[str, dict[str, int]] = {}
        for path, size in self.storage.files(self.folder).items():
            name, _, file = path.partition("/")
            if file and _ANY.fullmatch(name):
                held.setdefault(name, {})[file] = size
        found, remains = [], []
        for name, sizes in held.items():
            try:
                copy = self._copy(name, sizes)
            except BadManifest:
                continue  # of another version, or changed: it is left as it is
            if copy is not None:
                found.append(copy)
            elif _OURS.fullmatch(name):
                remains.append(name)
        return sorted(found, key=lambda copy: copy.manifest.order, reverse=True), sorted(remains)

    def one(self, name: str) -> Copy | None:
        """Return one copy; None if it is missing or unfinished."""
        try:
            return self._copy(name, self.storage.files(self._at(name))) if _ANY.fullmatch(name) else None
        except BadManifest:
            return None

    def _copy(self, name: str, sizes: dict[str, int]) -> Copy | None:
        """Return the copy in a folder with these files; None if it is unfinished."""
        manifest = self._manifest(name, sizes)
        if manifest is None:
            return None
        logs = tuple(sorted(file for file in sizes if _LOG.fullmatch(file)))
        return Copy(name, manifest, _fault(manifest, sizes), logs)

    def _manifest(self, name: str, sizes: dict[str, int]) -> Manifest | None:
        """Return the manifest of a copy; None if it is not there, or was not written to its end."""
        if NAME not in sizes:
            return None
        key = name, sizes[NAME]
        if key not in self._known:
            text = (self.storage.read(self._at(name, NAME)) or b"").decode("utf-8", "replace")
            try:
                json.loads(text)
            except ValueError:
                return None
            self._known[key] = Manifest.parse(text)
        return self._known[key]

    def upload(self, path: Path, logs: Sequence[Path], *, before_last: Callable[[], None]) -> None:
        """Upload a checkpoint; the manifest is the last file.

        Args:
            path: the checkpoint on the disk.
            logs: logs to put beside it, whole or longer than at the save.
            before_last: called before the manifest; if it raises an error, the copy stays unfinished.

        Raises:
            FileNotFoundError: it was removed or replaced on the disk in the meantime.
        """
        text = (path / NAME).read_text(encoding="utf-8")
        manifest = Manifest.parse(text)
        name = name_of(path, manifest)
        for file in manifest.files:
            self.storage.upload(path / file, self._at(name, file))
        for log in logs:
            if log.exists():
                self.storage.write(self._at(name, log.name), log.read_bytes())
        if (path / NAME).read_text(encoding="utf-8") != text:
            raise FileNotFoundError(f"{path} was replaced")
        before_last()
        self.storage.write(self._at(name, NAME), text.encode())

    def remove(self, copy: Copy) -> None:
        """Remove a copy, the manifest first."""
        self.storage.remove(self._at(copy.name, NAME))
        self.storage.remove_folder(self._at(copy.name))

    def remove_remains(self, name: str) -> None:
        """Remove an unfinished copy."""
        self.storage.remove_folder(self._at(name))

    def download(self, copy: Copy, final: Path, *, before_last: Callable[[], object] = lambda: None) -> None:
        """Download a copy, compare it with its manifest, and rename it into place.

        Args:
            copy: the copy.
            final: the folder, beside which a temporary one is written.
            before_last: called when the copy is known to be sound, before it is renamed.

        Raises:
            BadCheckpoint: a file is missing or damaged.
            DiskFull: it does not fit on the disk.
        """
        fresh = files.temporary(final)
        with files.failures_of(final.parent):
            files.require_space(final.parent, sum(size for size, _ in copy.manifest.files.values()))
            files.discard(fresh)
            fresh.mkdir()
            try:
                for name, expected in copy.manifest.files.items():
                    self._download(copy, name, fresh / name, expected)
                with files.DurableFile(fresh / NAME) as file:
                    file.write(copy.manifest.text().encode())
                before_last()
                files.publish(fresh, final)
            except BaseException:
                files.discard(fresh)
                raise

    def _download(self, copy: Copy, name: str, path: Path, expected: tuple[int, str]) -> None:
        if copy.fault:
            raise self.bad(copy, copy.fault)
        try:
            self.storage.download(self._at(copy.name, name), path)
        except FileNotFoundError as error:
            raise self.bad(copy, f"{name} is missing") from error
        found = path.stat().st_size, files.crc32_of(path)
        if found != expected:
            raise self.bad(copy, f"{name} is damaged: its checksum is {found[1]}, expected {expected[1]}")
        files.flush_file(path)

    def download_logs(self, copy: Copy, logs: Sequence[Path]) -> None:
        """Download the logs beside a copy; those that it lacks are skipped."""
        for log in logs:
            if log.name in copy.logs:
                self.storage.download(self._at(copy.name, log.name), log)

    def bad(self, copy: Copy, fault: str) -> BadCheckpoint:
        """Return the error for a damaged copy."""
        where = f"{self.storage.url}/{self._at(copy.name)}"
        return BadCheckpoint(f"the checkpoint {where} is invalid: {fault}", remedy="use another checkpoint")

    def _at(self, *names: str) -> str:
        return "/".join((self.folder, *names) if self.folder else names)


def _fault(manifest: Manifest, sizes: dict[str, int]) -> str:
    for name, (size, _) in manifest.files.items():
        if name not in sizes:
            return f"{name} is missing"
        if sizes[name] != size:
            return f"{name} has {sizes[name]:,} bytes, expected {size:,}"
    return ""
