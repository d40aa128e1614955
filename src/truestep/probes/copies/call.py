"""A call of a model by the program: its arguments with their names, and the ones with a row for each sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

from truestep.probes.context.local_variables import argument
from truestep.probes.copies.objects import Refused

Path = tuple[Any, ...]
"""Position of a value in the arguments: "args" or "kwargs", then the keys and indices that lead to it."""

_DEEP = 4
_MOST_ITEMS = 64


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self, torch: Any) -> dict[Path, Any]:
        """Return the tensors in the arguments, by their position."""
        return {
            path: value
            for path, value in _leaves((self.args, self.kwargs), ())
            if type(value) in (torch.Tensor, torch.nn.Parameter) and value.numel() and not value.is_complex()
        }

    def rows(self, torch: Any) -> tuple[int, dict[Path, Any]]:
        """Return the number of rows of the first argument with dimensions, and all tensors with so many rows.

        Raises:
            Refused: the arguments have no common first dimension.
        """
        tensors = {path: value for path, value in self.tensors(torch).items() if value.dim()}
        if not tensors:
            raise Refused("its arguments contain no tensor with rows")
        rows = int(next(iter(tensors.values())).shape[0])
        return rows, {path: value for path, value in tensors.items() if value.shape[0] == rows}

    def replaced(self, values: dict[Path, Any]) -> Call:
        """Return the call with other values at some positions."""
        args, kwargs = _replaced((self.args, self.kwargs), (), values)
        return Call(args, kwargs)


def called(module: Any, frame: FrameType) -> Call:
    """Return the call of a model in torch's frame of it; for a function as a module, its latest one.

    Raises:
        Refused: the frame is that of a wrapper, or cannot be read.
    """
    latest = vars(module).get("latest")
    if type(latest) is Call:
        return latest
    args, kwargs = argument(frame, "args"), argument(frame, "kwargs")
    if argument(frame, "self") is not module:
        raise Refused("it is wrapped")
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise Refused("its arguments are not available")
    return Call(args, dict(kwargs))


def name_of(path: Path, module: Any) -> str:
    """Return the name of an argument in the model's `forward`, such as "mask" or "batch['mask']"."""
    forward = getattr(type(module), "forward", None)
    names = forward.__code__.co_varnames[1 : forward.__code__.co_argcount] if isinstance(forward, FunctionType) else ()
    side, key, *inner = path
    first = str(key) if side == "kwargs" else names[key] if key < len(names) else f"argument {key}"
    return first + "".join(f"[{part!r}]" for part in inner)


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the values in nested arguments with their positions; those of the call itself begin with its two parts."""
    if len(path) <= _DEEP and isinstance(value, tuple | list):
        for index, item in enumerate(value[:_MOST_ITEMS]):
            yield from _leaves(item, (*path, index if path else ("args", "kwargs")[index]))
    elif len(path) <= _DEEP and isinstance(value, dict):
        for key, item in list(value.items())[:_MOST_ITEMS]:
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _replaced(value: Any, path: Path, values: dict[Path, Any]) -> Any:
    if path in values:
        return values[path]
    if len(path) <= _DEEP and type(value) in (tuple, list):
        parts = [_replaced(v, (*path, n if path else ("args", "kwargs")[n]), values) for n, v in enumerate(value)]
        return type(value)(parts)
    if len(path) <= _DEEP and isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(item, (*path, index), values) for index, item in enumerate(value)))
    if len(path) <= _DEEP and type(value) is dict:
        return {key: _replaced(item, (*path, key), values) for key, item in value.items()}
    return value
