"""Weights from files of any origin, read without running code from them."""

from __future__ import annotations

import argparse
import atexit
import pickle
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any

import torch
from torch.serialization import safe_globals

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.disk.manifest import NAME
from truestep.loop.checkpoint.disk.tensor_file import read_tensors
from truestep.loop.checkpoint.listing import find
from truestep.loop.checkpoint.remote.fetched import fetched
from truestep.loop.checkpoint.remote.storage import is_url

_NESTS = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")
_NEEDS_CODE = re.compile("Unsupported global|unsupported GLOBAL|Can only create|Can only build")
"""Beginning of torch's messages on objects that `weights_only=True` refuses; other messages mean a damaged file."""
_FILES = ("model.safetensors", "pytorch_model.bin")
SHOWN = 5
"""Most keys in a message."""


def read_weights(
    source: Path | str | Checkpoint | Mapping[str, Any], *, name: str | None = None, device: torch.device | str = "cpu"
) -> Mapping[str, Any]:
    """Return the weights in a checkpoint, a file or a mapping, under their original keys.

    Args:
        source: as for `load_weights`.
        name: name of the model or entry, if there are several.
        device: device for the tensors.

    Raises:
        BadCheckpoint: the file is missing, damaged, or has no weights that can be read safely.
    """
    if isinstance(source, Mapping):
        return _unnested(source, name, "the given mapping")
    if isinstance(source, Checkpoint):
        return _of_checkpoint(source, name, device)
    if is_url(source):
        with fetched(str(source)) as path:
            return read_weights(path, name=name, device=device)
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
    """Return the source of weights at a path: a verified checkpoint, or the path of a file.

    Args:
        path: as for `load_weights`; the content of a URL is downloaded.

    Raises:
        BadCheckpoint: nothing is there, or the checkpoint is damaged.
    """
    if is_url(path):  # each model loads its weights from there, until the end of the program
        stack = ExitStack()
        atexit.register(stack.close)
        path = stack.enter_context(fetched(str(path)))
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
            expected=f"expected one of {', '.join(map(repr, checkpoint.models))}",
            remedy="pass the name of one of them as name=",
        )
    return checkpoint.model(name, device)


def _loaded(path: Path, device: torch.device | str) -> Any:
    try:
        with safe_globals(_harmless()):
            return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch's readers raise many kinds of errors for a damaged file
        reason = _NEEDS_CODE.search(str(error))
        if reason is not None and isinstance(error, pickle.UnpicklingError):
            refused = str(error)[reason.start() :].partition(" was ")[0].splitlines()[0]
            raise BadCheckpoint(
                f"{path} cannot be read without running code from it",
                expected=f"expected tensors and plain containers, got: {refused}",
                remedy="if you trust it, load it with torch.load(weights_only=False) and save its state_dict() again",
            ) from error
        raise BadCheckpoint(
            f"{path} is damaged, or was not written by torch.save",
            expected=f"expected a complete file, got {path.stat().st_size:,} bytes that cannot be read",
            remedy="download or save the file again",
        ) from error


def _harmless() -> list[Any]:
    """Return types that scripts often save beside weights and that load without running code: arrays, paths, ..."""
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
    """Return the mapping with the weights, which may be nested; `said` names the source in errors."""
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
        expected=f"expected tensors by name, also under {', '.join(map(repr, _NESTS[:3]))}, got {got}",
        remedy="pass the key that holds them as name=, or pass the mapping itself",
    )


def _holds_tensors(content: Mapping[str, Any]) -> bool:
    return any(isinstance(value, torch.Tensor) or str(key).endswith("_extra_state") for key, value in content.items())


def some(texts: Iterable[str]) -> str:
    """Return the first of some texts, and the number of the others.

    Example:
        >>> some(map(str, range(8)))
        '0, 1, 2, 3, 4 and 3 more'
    """
    texts = list(texts)
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
