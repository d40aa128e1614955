"""The content of one checkpoint: collected while training waits, written afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from torch import nn

from truestep import __version__
from truestep.errors import UnsavableState
from truestep.loop.checkpoint.disk.files import DurableFile
from truestep.loop.checkpoint.disk.manifest import NAME, Manifest
from truestep.loop.checkpoint.disk.tensor_file import fits, write_tensors
from truestep.loop.checkpoint.safe_state import plain
from truestep.loop.checkpoint.snapshot import Snapshot

BESIDE, STATE = "models.pt", "state.pt"


@dataclass(frozen=True)
class Content:
    """The content of a checkpoint without its manifest, on the CPU.

    Args:
        models: dense tensors of each model, by the model's name.
        others: content of the other files, by file name.
        bytes: total size of all tensors.
        documents: texts of more files, by file name.
    """

    models: dict[str, dict[str, torch.Tensor]]
    others: dict[str, Any]
    bytes: int
    documents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        models: Mapping[str, Mapping[str, Any]],
        state: Mapping[str, Any],
        ranks: Sequence[Mapping[str, Any]],
        *,
        copies: bool,
        documents: Mapping[str, str] | None = None,
    ) -> Content:
        """Return the current content.

        Args:
            models: the `state_dict` of each model.
            state: all other state.
            ranks: random states of each process.
            copies: copy the tensors, because training changes them before they are written.
            documents: texts of more files, by file name.

        Raises:
            UnsavableState: an object cannot be restored from a file.
        """
        snapshot = Snapshot(copies=copies)
        tensors: dict[str, dict[str, torch.Tensor]] = {}
        beside: dict[str, Any] = {}
        for name, entries in models.items():
            tensors[name] = {key: snapshot.take(item) for key, item in entries.items() if fits(key, item)}
            extra = {key: item for key, item in entries.items() if key not in tensors[name]}
            where = f"the state of model {name!r}"
            beside[name] = {
                "keys": list(entries),
                "extra": plain(extra, snapshot.take, where),
                "metadata": plain(getattr(entries, "_metadata", {}), snapshot.take, where),
            }
        others = {BESIDE: beside, STATE: plain(dict(state), snapshot.take)}
        for rank, rng in enumerate(ranks):
            others[f"rng-rank{rank}.pt"] = plain(dict(rng), snapshot.take, "the random states")
        snapshot.finish()
        return cls(tensors, others, snapshot.bytes, dict(documents or {}))

    def write(
        self, folder: Path, manifest: Manifest, *, proving: bool, parts: Mapping[str, tuple[int, str]] | None = None
    ) -> None:
        """Write every file into a folder, the manifest last, each flushed to the disk.

        Args:
            folder: an empty folder, or one with the files of `parts`.
            manifest: the manifest without sizes and checksums, which are added here.
            proving: read the files of other state back and compare them, before the manifest is written.
            parts: size and checksum of the files that the ranks have written there.

        Raises:
            OSError: a file could not be written.
            UnsavableState: the state read back differs from the state written.
        """
        written = dict(parts or {})
        names = {name: f"{quote(name, safe='')}.safetensors" for name in self.models}
        for name, tensors in self.models.items():
            with DurableFile(folder / names[name]) as file:
                write_tensors(file, tensors)
            written[names[name]] = (file.bytes, file.crc32)
        for file_name, value in self.others.items():
            with DurableFile(folder / file_name) as file:
                torch.save(value, file)  # type: ignore[arg-type]
            written[file_name] = (file.bytes, file.crc32)
            if proving:
                _prove(folder / file_name, value)
        for file_name, text in self.documents.items():
            with DurableFile(folder / file_name) as file:
                file.write(text.encode())
            written[file_name] = (file.bytes, file.crc32)
        manifest = replace(
            manifest,
            files=written,
            models=names,
            versions={"torch": torch.__version__, "truestep": __version__},
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with DurableFile(folder / NAME) as file:
            file.write(manifest.text().encode())


@dataclass(frozen=True)
class Evaluated:
    """Weights with the metric that was computed with them, on the CPU.

    Attributes:
        step: number of optimizer steps at the evaluation.
        epoch: the current epoch.
        metric: metric that selects the best checkpoint.
        mode: "min" or "max".
        content: the models.
        stamp: from `stamp_of`, to detect changes of the models since then.
    """

    step: int
    epoch: int
    metric: float
    mode: str
    content: Content | None
    stamp: object


def stamp_of(modules: Iterable[nn.Module], applied: Iterable[int]) -> object:
    """Return a value that differs after any change of the models' tensors.

    Args:
        modules: the models.
        applied: steps of each optimizer; needed since some optimizers write without raising a tensor's version.
    """
    tensors = (tensor for module in modules for tensor in chain(module.parameters(), module.buffers()))
    versions = tuple((id(tensor), 0 if tensor.is_inference() else tensor._version) for tensor in tensors)
    return versions, tuple(applied)


def _prove(path: Path, value: Any) -> None:
    """Read a file back and compare everything except the values of tensors, which stay on the disk.

    Raises:
        UnsavableState: the state read back differs.
    """
    came_back = torch.load(path, weights_only=True, mmap=True)
    if repr(_outline(came_back)) != repr(_outline(value)):
        raise UnsavableState(
            f"{path.name} differs from the state that was written when it is read back",
            expected="expected the same containers, numbers and text",
            remedy="save only numbers, text and tensors, and leave other objects out of the state",
        )


def _outline(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype, value.layout
    if isinstance(value, dict):
        return type(value), [(key, _outline(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_outline(item) for item in value]
    return type(value), value
