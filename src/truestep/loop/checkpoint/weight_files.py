"""Weights out of files, of this package or of anybody, without running code from them."""

from __future__ import annotations

import argparse
import pickle
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any

import torch
from torch.serialization import safe_globals

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import find
from truestep.loop.checkpoint.manifest import NAME
from truestep.loop.checkpoint.tensor_file import read_tensors

_NESTS = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")
_NEEDS_CODE = re.compile("Unsupported global|unsupported GLOBAL|Can only create|Can only build")
"""How torch names what `weights_only=True` refuses; what else it says is about a damaged file."""
_FILES = ("model.safetensors", "pytorch_model.bin")
SHOWN = 5
"""How many keys a message names."""


def read_weights(
    source: Path | str | Checkpoint | Mapping[str, Any], *, name: str | None = None, device: torch.device | str = "cpu"
) -> Mapping[str, Any]:
    """Return the weights that a checkpoint, a file or a mapping holds, by their keys as written.

    Args:
        source: as for `load_weights`.
        name: which model or entry, where there are several.
        device: where they are read to.

    Raises:
        BadCheckpoint: the file is missing, damaged, or holds no weights that can be read safely.
    """
    if isinstance(source, Mapping):
        return _unnested(source, name, "what was given")
    if isinstance(source, Checkpoint):
        return _of_checkpoint(source, name, device)
    path = Path(source)
    if path.is_dir() and not (path / NAME).exists():
        path = next((path / file for file in _FILES if (path / file).exists()), path)
    if not path.is_file():
        ours = (path / NAME).exists()
        return _of_checkpoint(Checkpoint(path) if ours else find(path), name, device)
    if path.suffix == ".safetensors":
        return read_tensors(path, device)
    return _unnested(_loaded(path, device), name, str(path))


def source_of_weights(path: Path | str) -> Path | Checkpoint:
    """Return what a path means, checked before anything is built: a checkpoint, verified, or a file.

    Args:
        path: as for `load_weights`.

    Raises:
        BadCheckpoint: there is nothing, or the checkpoint is damaged.
    """
    path = Path(path)
    if path.is_file() or any((path / file).exists() for file in _FILES if not (path / NAME).exists()):
        return path
    return find(path)


def _of_checkpoint(checkpoint: Checkpoint, name: str | None, device: torch.device | str) -> Mapping[str, Any]:
    if name is None and len(checkpoint.models) == 1:
        name = checkpoint.models[0]
    if name is None:
        raise BadCheckpoint(
            f"the checkpoint {checkpoint.path} holds {len(checkpoint.models)} models",
            expected=f"one of {', '.join(map(repr, checkpoint.models))}",
            remedy="say which one by name=",
        )
    return checkpoint.model(name, device)


def _loaded(path: Path, device: torch.device | str) -> Any:
    try:
        with safe_globals(_harmless()):
            return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # a damaged file makes torch's readers stumble in any way
        reason = _NEEDS_CODE.search(str(error))
        if reason is not None and isinstance(error, pickle.UnpicklingError):
            refused = str(error)[reason.start() :].partition(" was ")[0].splitlines()[0]
            raise BadCheckpoint(
                f"{path} cannot be read without running code from it",
                expected=f"tensors and plain containers; got: {refused}",
                remedy="if you trust it, load it with torch.load(weights_only=False) and save its state_dict() again",
            ) from error
        raise BadCheckpoint(
            f"{path} is damaged, or is no file of torch.save",
            expected=f"a whole file; got {path.stat().st_size:,} bytes that cannot be read",
            remedy="fetch or save the file again",
        ) from error


def _harmless() -> list[Any]:
    """What scripts often save beside weights, and what making again runs nothing: numbers, arrays, paths, arguments."""
    kinds: list[Any] = [argparse.Namespace, PosixPath, PurePosixPath]
    try:
        import numpy
        from numpy._core import multiarray
    except ImportError:
        return kinds
    kinds += [numpy.ndarray, numpy.dtype, *{type(numpy.dtype(code)) for code in "?bhilqBHILQefdFD"}]
    for name in ("scalar", "_reconstruct"):
        made = getattr(multiarray, name)
        kinds += [(made, f"numpy._core.multiarray.{name}"), (made, f"numpy.core.multiarray.{name}")]
    return kinds


def _unnested(content: Any, name: str | None, said: str) -> Mapping[str, Any]:
    """The mapping in which the weights are."""
    whole = content
    names = [name] if name is not None else []
    for _ in range(4):
        if not isinstance(content, Mapping) or (not names and _holds_tensors(content)):
            break
        inner = next((content[key] for key in (*names, *_NESTS) if isinstance(content.get(key), Mapping)), None)
        if inner is None:
            break
        names = [] if names and content.get(names[0]) is inner else names
        content = inner
    if isinstance(content, Mapping) and not names and (_holds_tensors(content) or not content):
        return content
    got = f"keys {some([str(key) for key in whole])}" if isinstance(whole, Mapping) else f"a {type(whole).__name__}"
    raise BadCheckpoint(
        f"no weights were found in {said}" + (f" under {name!r}" if name else ""),
        expected=f"tensors by their names, also under {', '.join(map(repr, _NESTS[:3]))}; got {got}",
        remedy="say under which key they are by name=, or give the mapping itself",
    )


def _holds_tensors(content: Mapping[str, Any]) -> bool:
    return any(isinstance(value, torch.Tensor) or str(key).endswith("_extra_state") for key, value in content.items())


def some(texts: Iterable[str]) -> str:
    """Return the first of some texts, and how many more there are.

    Example:
        >>> some(map(str, range(8)))
        '0, 1, 2, 3, 4 and 3 more'
    """
    texts = list(texts)
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
