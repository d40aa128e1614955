"""Observe writes and reads of files of state: `torch.save`, `torch.load`, safetensors, and renames to a final name."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.seams.patch import patch

WriteSeen = Callable[[str, str, Callable[[], None]], None]
"""Called during a write with the writing function, the path, and a function that leaves the file as a kill would."""


def watch_writes(stack: ExitStack, seen: WriteSeen) -> None:
    """Call a function during each write of a file of state, until the stack unwinds.

    The call comes after `torch.save` wrote the tensors and before its final table, before safetensors writes, and
    before a rename below the working folder. Saving into memory is ignored.

    Args:
        stack: removes the wrappers.
        seen: the function, see `WriteSeen`; it may end the process.
    """
    _watch_torch(stack, seen)
    _watch_safetensors(stack, seen)
    here = os.path.realpath(os.curdir)

    def reporting(rename: Any) -> Any:
        def renamed(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(target, str | os.PathLike) and os.path.realpath(target).startswith(here + os.sep):
                seen("rename", os.path.relpath(os.path.realpath(target), here), _nothing)
            return rename(source, target, *args, **kwargs)

        return renamed

    for name in ("replace", "rename"):
        patch(stack, os, name, reporting(getattr(os, name)))


def watch_reads(stack: ExitStack, seen: Callable[[], None]) -> None:
    """Call a function before each `torch.load`, until the stack unwinds."""

    def _load(*args: Any, **kwargs: Any) -> Any:
        seen()
        return load(*args, **kwargs)

    def _legacy_load(*args: Any, **kwargs: Any) -> Any:
        seen()
        return legacy_load(*args, **kwargs)

    load = seams.saving.wrap(stack, "_load", _load)
    legacy_load = seams.saving.wrap(stack, "_legacy_load", _legacy_load)


def _watch_torch(stack: ExitStack, seen: WriteSeen) -> None:
    def _save(obj: Any, zip_file: Any, *args: Any, **kwargs: Any) -> Any:
        result = save(obj, zip_file, *args, **kwargs)
        path = paths.pop(id(zip_file), "")
        if path:
            seen("torch.save", path, _nothing)
        return result

    def _legacy_save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        result = legacy_save(obj, f, *args, **kwargs)
        if path := _path(f):
            seen("torch.save", path, _nothing)
        return result

    def _open_zipfile_writer(name_or_buffer: Any) -> Any:
        opener = open_writer(name_or_buffer)
        if (path := _path(name_or_buffer)) and hasattr(opener, "file_like"):
            paths[id(opener.file_like)] = path
        return opener

    paths: dict[int, str] = {}
    save = seams.saving.wrap(stack, "_save", _save)
    legacy_save = seams.saving.wrap(stack, "_legacy_save", _legacy_save)
    open_writer = seams.saving.wrap(stack, "_open_zipfile_writer", _open_zipfile_writer)


def _watch_safetensors(stack: ExitStack, seen: WriteSeen) -> None:
    from safetensors import torch as module

    def serialize_file(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        seen("safetensors", _shown(filename), lambda: _half(Path(filename), serialize))
        return serialize(tensors, filename, *args, **kwargs)

    serialize = patch(stack, module, "serialize_file", serialize_file)


def _half(path: Path, serialize: Any) -> None:
    """Leave half a file, as a killed write of safetensors does: beside the final name, or, before 0.6, under it."""
    probe = path.with_name(f".{path.name}.probe")
    probe.write_bytes(b"")
    before = probe.stat().st_ino
    serialize({}, str(probe))
    beside = probe.stat().st_ino != before
    probe.unlink()
    (path.with_name(".tmpHalf00") if beside else path).write_bytes(b"\x40\0\0\0\0\0\0\0{")


def _path(file: Any) -> str:
    """Return the path of a file, "" for a buffer in memory."""
    if not isinstance(file, str | os.PathLike):
        file = getattr(file, "name", None) or getattr(file, "path", None)
    return _shown(file) if isinstance(file, str | os.PathLike) else ""


def _shown(path: Any) -> str:
    here, full = os.path.realpath(os.curdir), os.path.realpath(path)
    return os.path.relpath(full, here) if full.startswith(here + os.sep) else full


def _nothing() -> None:
    pass
