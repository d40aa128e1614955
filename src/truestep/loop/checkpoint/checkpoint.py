"""One finished checkpoint: verified when it is read, without running code from it."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.content import BESIDE, STATE
from truestep.loop.checkpoint.disk import files as files
from truestep.loop.checkpoint.disk.manifest import BadManifest, Manifest
from truestep.loop.checkpoint.disk.tensor_file import read_tensors
from truestep.loop.checkpoint.safe_state import restored


class Checkpoint:
    """One finished checkpoint on the disk. Each file is verified against the manifest when it is first read.

    Args:
        path: its folder.

    Raises:
        BadCheckpoint: the checkpoint was never finished, or lacks a file.
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
        """Number of optimizer steps at the save."""
        return self.manifest.step

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return self.manifest.epoch

    @property
    def metric(self) -> float | None:
        """Metric that selects the best checkpoint; None if it was saved without one."""
        return self.manifest.metric

    @property
    def models(self) -> list[str]:
        """Names of its models."""
        return list(self.manifest.models)

    def verify(self) -> None:
        """Read every file and compare its checksum with the manifest.

        Raises:
            BadCheckpoint: a file is damaged; the message names it.
        """
        for name in self.manifest.files:
            self.file(name)

    def model(self, name: str, device: torch.device | str = "cpu") -> dict[str, Any]:
        """Return the `state_dict` of a model: plain keys, the same dtypes and bits, tied weights as one tensor.

        Args:
            name: name of the model; one of `models`.
            device: device for the tensors.

        Raises:
            BadCheckpoint: the checkpoint has no such model, or a file is damaged.
        """
        if name not in self.manifest.models:
            raise BadCheckpoint(
                f"the checkpoint {self.path} has no model {name!r}",
                expected=f"expected one of {', '.join(map(repr, self.models)) or 'none'}",
                remedy="pass the name under which the model was saved",
            )
        tensors = read_tensors(self.file(self.manifest.models[name]), device)
        beside = self._load(BESIDE)[name]
        state: OrderedDict[str, Any] = OrderedDict()
        extra = restored(beside["extra"], torch.device(device))
        for key in beside["keys"]:
            state[key] = tensors[key] if key in tensors else extra[key]
        if beside["metadata"]:
            state._metadata = beside["metadata"]  # type: ignore[attr-defined]
        return state

    def state(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """Return all state except models and random states, as passed to `save`.

        Args:
            device: device for tensors that were on an accelerator; None for the accelerator of the same type if there
                is one, else the CPU.

        Raises:
            BadCheckpoint: the file is damaged.
        """
        state: dict[str, Any] = restored(self._load(STATE), None if device is None else torch.device(device))
        return state

    def rng(self, rank: int = 0) -> dict[str, Any]:
        """Return the random states of one process.

        Args:
            rank: rank of the process.

        Raises:
            BadCheckpoint: the file is damaged, or the checkpoint has no such rank.
        """
        name = f"rng-rank{rank}.pt"
        if name not in self.manifest.files:
            raise BadCheckpoint(
                f"the checkpoint {self.path} has no random states of rank {rank}",
                expected=f"expected a rank below {self.world_size}",
                remedy="resume with the number of processes that saved it",
            )
        state: dict[str, Any] = restored(self._load(name))
        return state

    @property
    def world_size(self) -> int:
        """Number of processes with saved random states."""
        return sum(name.startswith("rng-rank") for name in self.manifest.files)

    def file(self, name: str) -> Path:
        """Return the path of a file, after its checksum was compared with the manifest once.

        Raises:
            BadCheckpoint: the file is damaged, or does not belong to the checkpoint.
        """
        path = self.path / name
        if name not in self.manifest.files:
            raise _bad(self.path, f"{name} is not a part of it")
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
        path = self.file(name)
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
            # The checksum is correct, so another program wrote the file. It may contain code, which is not run.
            said = str(error).strip().splitlines()
            raise BadCheckpoint(
                f"the checkpoint {self.path} cannot be read: {name} contains more than tensors, numbers and text",
                expected=f"expected a file by truestep; torch.load(weights_only=True): {(said or [''])[-1][:200]}",
                remedy="use another checkpoint; the checksums match, so another program wrote this file",
            ) from error

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, step={self.step})"


def _bad(path: Path, fault: str) -> BadCheckpoint:
    return BadCheckpoint(f"the checkpoint {path} is invalid: {fault}", remedy="use another checkpoint")
