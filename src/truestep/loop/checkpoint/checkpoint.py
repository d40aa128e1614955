"""One checkpoint, as it is read back: verified, without running code from it."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint import files as files
from truestep.loop.checkpoint.content import BESIDE, STATE
from truestep.loop.checkpoint.manifest import BadManifest, Manifest
from truestep.loop.checkpoint.safe_state import restored
from truestep.loop.checkpoint.tensor_file import read_tensors


class Checkpoint:
    """One finished checkpoint on the disk. Each file is verified against the manifest when it is first read.

    Args:
        path: its folder.

    Raises:
        BadCheckpoint: it was never finished, or lacks a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sound: set[str] = set()
        try:
            self.manifest = Manifest.read(path)
        except BadManifest as error:
            raise _bad(path, str(error)) from error
        if fault := self.manifest.fault(path):
            raise _bad(path, fault)

    @property
    def step(self) -> int:
        """Optimizer updates taken when it was saved."""
        return self.manifest.step

    @property
    def epoch(self) -> int:
        """Epochs that had ended."""
        return self.manifest.epoch

    @property
    def metric(self) -> float | None:
        """What it was judged by; None if it was not."""
        return self.manifest.metric

    @property
    def models(self) -> list[str]:
        """The names of the models in it."""
        return list(self.manifest.models)

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises:
            BadCheckpoint: a file is not what was written; says which.
        """
        for name in self.manifest.files:
            self._file(name)

    def model(self, name: str, device: torch.device | str = "cpu") -> dict[str, Any]:
        """Return the `state_dict` that a model had: plain keys, the same types and bits, tied weights as one tensor.

        Args:
            name: of the model; one of `models`.
            device: where the tensors go.

        Raises:
            BadCheckpoint: there is no such model in it, or a file is damaged.
        """
        if name not in self.manifest.models:
            raise BadCheckpoint(
                f"the checkpoint {self.path} holds no model {name!r}",
                expected=f"one of {', '.join(map(repr, self.models)) or 'none'}",
                remedy="give the name that the model was saved under",
            )
        tensors = read_tensors(self._file(self.manifest.models[name]), device)
        beside = self._load(BESIDE)[name]
        state: OrderedDict[str, Any] = OrderedDict()
        extra = restored(beside["extra"], torch.device(device))
        for key in beside["keys"]:
            state[key] = tensors[key] if key in tensors else extra[key]
        if beside["metadata"]:
            state._metadata = beside["metadata"]  # type: ignore[attr-defined]
        return state

    def state(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """Return all state but models and random states, as it was given to `save`.

        Args:
            device: where tensors go that were on an accelerator; None: the accelerator of that kind, else the CPU.

        Raises:
            BadCheckpoint: the file is damaged.
        """
        state: dict[str, Any] = restored(self._load(STATE), None if device is None else torch.device(device))
        return state

    def rng(self, rank: int = 0) -> dict[str, Any]:
        """Return the random states of one process.

        Args:
            rank: number of the process.

        Raises:
            BadCheckpoint: the file is damaged, or there were fewer processes.
        """
        name = f"rng-rank{rank}.pt"
        if name not in self.manifest.files:
            raise BadCheckpoint(
                f"the checkpoint {self.path} holds no random states of rank {rank}",
                expected=f"a rank below {self.world_size}",
                remedy="resume with as many processes as it was saved with",
            )
        state: dict[str, Any] = restored(self._load(name))
        return state

    @property
    def world_size(self) -> int:
        """How many processes saved their random states."""
        return sum(name.startswith("rng-rank") for name in self.manifest.files)

    def _file(self, name: str) -> Path:
        path = self.path / name
        if name not in self._sound:
            size, expected = self.manifest.files[name]
            try:
                found = files.crc32_of(path)
            except OSError as error:
                raise _bad(self.path, f"{name} cannot be read: {error.strerror}") from error
            if found != expected or path.stat().st_size != size:
                raise _bad(self.path, f"{name} is damaged: its checksum is {found}, expected {expected}")
            self._sound.add(name)
        return path

    def _load(self, name: str) -> Any:
        path = self._file(name)
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
            # its checksum is right: it was made by another program, and may hold code, which is not run
            said = str(error).strip().splitlines()
            raise BadCheckpoint(
                f"the checkpoint {self.path} cannot be read: {name} holds more than tensors, numbers and text",
                expected=f"what truestep writes; torch.load(weights_only=True) says: {(said or [''])[-1][:200]}",
                remedy="take another checkpoint; its checksums match, so that this file was written by another program",
            ) from error

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, step={self.step})"


def _bad(path: Path, what: str) -> BadCheckpoint:
    return BadCheckpoint(f"the checkpoint {path} is not whole: {what}", remedy="take another checkpoint")
