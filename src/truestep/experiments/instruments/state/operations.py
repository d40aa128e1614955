"""Record the operations of torch in one step of a script, with checksums of their inputs and results."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.state import digests
from truestep.experiments.running.inside.steps import on_steps

MOST = 200_000
"""Largest number of operations to record."""
_OURS = str(Path(__file__).resolve().parents[3])
_LIBRARY = (sysconfig.get_path("stdlib"), "<")


class Operations(Instrument):
    """Writes one line per operation to `operations.jsonl`: name, line of the program, checksums of inputs and results.

    Args:
        folder: folder for its file.
        script: path or name of the script.
        after: number of steps after which recording begins; 0 records from the import of torch on. It ends with the
            next step of an optimizer.
    """

    name = "operations"

    def __init__(self, folder: Path, script: str, after: int = 0) -> None:
        super().__init__(folder, script)
        self._path = folder / "operations.jsonl"
        self._lines: list[tuple[str, str, int, int]] = []
        self._left = after
        self._mode: Any = None

    def install(self, stack: ExitStack) -> None:
        on_steps(stack, self._stepped)
        stack.callback(self._end)
        if not self._left:
            self._begin()

    def _stepped(self, optimizer: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._begin()
        elif self._left < 0:
            self._end()

    def _begin(self) -> None:
        self._mode = _recorder(self._lines)
        self._mode.__enter__()

    def _end(self) -> None:
        if self._mode is None:
            return
        self._mode.__exit__(None, None, None)
        self._mode = None
        with self._path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in self._lines)


def _recorder(lines: list[tuple[str, str, int, int]]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self._unset: set[int] = set()
            """Addresses of memory that was allocated and not written: its values mean nothing."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if len(lines) >= MOST:
                return func(*args, **(kwargs or {}))
            given = _checksum((args, kwargs or {}), self._unset)
            result = func(*args, **(kwargs or {}))
            self._note(func, _addresses((args, kwargs or {})), _addresses(result))
            lines.append((str(func), _line(), given, _checksum(result, self._unset)))
            return result

        def _note(self, func: Any, given: set[int], made: set[int]) -> None:
            if "empty" in str(func):
                self._unset |= made
            elif func._schema.is_mutable:
                self._unset -= made
            else:
                self._unset -= made - given

    return Recorder()


def _parts(values: Any) -> Iterator[Any]:
    """Yield the tensors and numbers in some values."""
    import torch

    if isinstance(values, torch.Tensor | int | float):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _parts(value)
    elif isinstance(values, dict):
        yield from _parts(list(values.values()))


def _addresses(values: Any) -> set[int]:
    return {_address(part) for part in _parts(values) if not isinstance(part, int | float)} - {0}


def _address(tensor: Any) -> int:
    """Return the address of the memory of a tensor; 0 for one without memory."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def _checksum(values: Any, unset: set[int]) -> int:
    """Return a checksum of some values; tensors without values, or that cannot be read, count as 0."""
    found: list[int | float] = []
    for part in _parts(values):
        if isinstance(part, int | float):
            found.append(part)
            continue
        try:
            found.append(0 if _address(part) in unset else digests.of_tensor(part))
        except (RuntimeError, NotImplementedError):
            found.append(0)
    return digests.of(found)


def _line() -> str:
    """Return the nearest line of the program on the stack; "" for none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not (name.startswith((_OURS, *_LIBRARY)) or "site-packages" in name):
            return f"{os.path.relpath(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
