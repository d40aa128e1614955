"""`load_weights`: weights into a model, from a checkpoint or any file, with a report of all mismatches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from truestep.errors import KeysDoNotMatch
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.weight_files import SHOWN, read_weights, some
from truestep.seams.divided import divide, local
from truestep.seams.wrappers import bare


@dataclass(frozen=True)
class Report:
    """Result of `load_weights`.

    Args:
        loaded: keys of the model that were loaded.
        missing: keys of the model that the file lacks; they keep their values.
        unexpected: keys of the file that the model lacks.
        reshaped: keys with different shapes, with the shape in the file and in the model; they keep their values.
    """

    loaded: list[str]
    missing: list[str]
    unexpected: list[str]
    reshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]

    @property
    def complete(self) -> bool:
        """True if the keys and shapes of the file and of the model match exactly."""
        return not (self.missing or self.unexpected or self.reshaped)

    def __str__(self) -> str:
        lines = [f"{len(self.loaded)} loaded"]
        if self.missing:
            near = {key: get_close_matches(key, self.unexpected, 1) for key in self.missing[:SHOWN]}
            shown = [f"{key} (the file has {near[key][0]})" if near.get(key) else key for key in self.missing]
            lines.append(f"{len(self.missing)} missing in the file: {some(shown)}")
        if self.unexpected:
            lines.append(f"{len(self.unexpected)} unknown to the model: {some(self.unexpected)}")
        if self.reshaped:
            shapes = [f"{key} {list(file)} in the file, {list(model)} in the model" for key, (file, model) in
                      self.reshaped.items()]  # fmt: skip
            lines.append(f"{len(self.reshaped)} of another shape: {some(shapes)}")
        return "; ".join(lines)


def load_weights(
    model: nn.Module,
    source: Path | str | Checkpoint | Mapping[str, Any],
    *,
    name: str | None = None,
    partial: bool = False,
    device: torch.device | str = "cpu",
) -> Report:
    """Load weights into a model; the model is changed only if everything matches.

    Keys match with and without the prefixes of DDP, `torch.compile`, activation checkpointing and FSDP (`module.`,
    `_orig_mod.` and so on), in the file and in the model.

    Args:
        model: any module; its dtypes and devices stay.
        source: a checkpoint, a run or its `last` or `best`; a `.safetensors` file; a file of `torch.save`, read with
            `weights_only=True`, also with the weights under `"state_dict"`, `"model"` and the like; a URL of one of
            these, such as "s3://bucket/run/best"; or a mapping.
        name: name of the model in a checkpoint, or of the entry in a file, if there are several.
        partial: load the weights that match, and report the others; at least one must match.
        device: device that the weights are read to.

    Returns:
        The keys loaded, missing, unexpected and with another shape.

    Raises:
        KeysDoNotMatch: keys or shapes differ and `partial` is False, or no key matches.
        BadCheckpoint: the file is missing, damaged, or has no weights that can be read safely.
        StorageUnavailable: the storage of a URL cannot be read.

    Example:
        >>> small, large = nn.Linear(2, 3), nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        >>> weights = {"module." + key: value for key, value in small.state_dict().items()}
        >>> load_weights(small, weights).loaded
        ['weight', 'bias']
        >>> report = load_weights(large, {"0.weight": torch.ones(3, 2), "0.bias": torch.ones(7)}, partial=True)
        >>> print(report)
        1 loaded; 2 missing in the file: 1.weight, 1.bias; 1 of another shape: 0.bias [7] in the file, [3] in the model
    """
    said = "the given mapping" if isinstance(source, Mapping) else str(getattr(source, "path", source))
    state = read_weights(source, name=name, device=device)
    own = model.state_dict()
    local_own = {key: local(value) for key, value in own.items()}
    places = _places(state, own)
    loaded: dict[str, Any] = {}
    reshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for key, target in places.items():
        file, mine = _shape(state[key]), _shape(own[target])
        if file is not None and mine is not None and file != mine:
            reshaped[target] = (file, mine)
        else:
            loaded[target] = divide(state[key], own[target])
    named = loaded.keys() | reshaped.keys()
    missing = [key for key in own if key not in named and not _comes_along(key, local_own, loaded, state)]
    unexpected = [key for key in state if key not in places]
    report = Report([key for key in own if key in loaded], missing, unexpected, reshaped)
    if not report.complete and not (partial and loaded):
        raise KeysDoNotMatch(
            f"nothing in {said} matches the model" if not loaded else f"{said} does not match the model",
            expected=str(report),
            remedy="pass the weights of this model"
            if not loaded
            else "pass the weights of this model, or partial=True to load those that match",
        )
    if hasattr(state, "_metadata"):
        loaded = OrderedDict(loaded)
        loaded._metadata = state._metadata  # type: ignore[attr-defined]
    model.load_state_dict(loaded, strict=False)
    return report


def _places(state: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of the model for each key of the file: the same, or one that differs only by wrapper prefixes."""
    by_bare: dict[str, str | None] = {}
    for key in own:
        by_bare[bare(key)] = None if bare(key) in by_bare else key
    places = {key: key for key in state if key in own}
    taken = set(places)
    for key in state:
        target = by_bare.get(bare(key))
        if key not in places and target is not None and target not in taken:
            places[key] = target
            taken.add(target)
    return places


def _comes_along(key: str, own: Mapping[str, Any], loaded: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Return True if a key that the file lacks needs no value: tied to a loaded one, or a counter of batch norm."""
    if key.endswith("num_batches_tracked"):
        return not hasattr(state, "_metadata")  # files older than the counter
    mine = own[key]
    if _shape(mine) is None or not mine.numel():
        return False
    same = (other for other in loaded if _shape(own[other]) == _shape(mine))
    return any(own[other].data_ptr() == mine.data_ptr() for other in same)


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None for other state, and for lazy parameters before the first call."""
    if not isinstance(value, torch.Tensor) or is_lazy(value):
        return None
    return tuple(value.shape)
