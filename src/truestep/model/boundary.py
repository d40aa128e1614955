"""What a model or a loss was given and could not use, told beneath torch's own error.

Nothing is checked while all goes well. When an error passes through a model or through the context of the forward pass,
a post-mortem looks at its frames, and what it finds is added to the error as a note: the same exception goes on, of the
same type, with its traceback, and says which tensor was of another device, type or shape than what.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import torch
from torch import nn

_ROOMS = re.compile(r"(on|to) the same device|is not on the expected device")
_KINDS = (RuntimeError, ValueError, IndexError)
"""Of the errors that torch raises for tensors that do not fit."""


def watch_boundary(model: nn.Module) -> Callable[[], None]:
    """Let errors that pass through a model say what it could not use; return what ends this.

    Args:
        model: any module; it gets a forward hook that does nothing while all goes well.

    Example:
        >>> model = nn.Linear(3, 1)
        >>> end = watch_boundary(model)
        >>> images = torch.ones(2, 3, dtype=torch.float64)
        >>> try:
        ...     model(images)
        ... except RuntimeError as error:
        ...     print(error.__notes__[0])
        post-mortem[different-types]: `images` is float64, the weights of `model` are float32
          = help: write `images = images.float()` where it is made
    """
    return model.register_forward_hook(_passed, always_call=True, with_kwargs=True).remove


def _passed(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Look whether an error passes through a model; torch calls this when its forward pass is over, either way."""
    if torch.compiler.is_compiling() or result is not None:
        return
    error = sys.exc_info()[1]
    trace = None if error is None else error.__traceback__
    if isinstance(error, _KINDS) and trace is not None and trace.tb_frame is sys._getframe(1):
        tell(error)
        if not _is_told(error) and _ROOMS.search(str(error)):
            if note := _elsewhere(model, args, kwargs):
                error.add_note(note)


class Told:
    """A context whose errors say what was given that did not fit: the same as another one in all else.

    Args:
        context: entered and left in its place.
    """

    __slots__ = ("_context",)

    def __init__(self, context: AbstractContextManager[object]) -> None:
        self._context = context

    def __enter__(self) -> object:
        return self._context.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool | None:
        swallowed = self._context.__exit__(kind, error, trace)
        if error is not None:
            tell(error)
        return swallowed


def tell(error: BaseException) -> None:
    """Add to an error of torch that is passing through what a post-mortem finds, once; in doubt nothing is added."""
    if not isinstance(error, _KINDS) or isinstance(error, torch.OutOfMemoryError):
        return
    if error.__traceback__ is None or _is_told(error):
        return
    from truestep.postmortem import examine
    from truestep.probes import Scene

    trace = error.__traceback__
    try:
        error.__traceback__ = _whole(trace)
        found = examine(error, Scene(torch, lambda event: None))
    finally:
        error.__traceback__ = trace
    if found is not None:
        lines = [f"post-mortem[{found.slug}]: {found.message}"]
        lines += [f"  = {key}: {text}" for key, text in (*found.facts, ("help", found.help)) if text]
        error.add_note("\n".join(lines))


def _is_told(error: BaseException) -> bool:
    return any(note.startswith("post-mortem[") for note in getattr(error, "__notes__", ()))


def _elsewhere(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Say which arguments of a model are on another device than its weights; empty where that is not plain."""
    rooms = {parameter.device for parameter in model.parameters()}
    try:
        given = inspect.signature(type(model).forward).bind(model, *args, **kwargs).arguments
    except (TypeError, ValueError):
        given = dict(kwargs)
    strangers = [(name, tensor.device) for name, tensor in _tensors(given, "") if tensor.dim() and len(rooms) == 1]
    strangers = [(name, device) for name, device in strangers if device not in rooms]
    if not strangers:
        return ""
    (room,), (name, device) = rooms, strangers[0]
    kind = type(model).__name__
    return (
        f"post-mortem[different-devices]: `{name}` is on {device}, the weights of {kind} are on {room}\n"
        f"  = help: take batches from `run.train()` or `run.batches()`, or write `{name}.to('{room}')`"
    )


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Give the tensors in an argument, with the expressions that lead to them."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{name}[{key!r}]" if name else str(key))
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from _tensors(item, f"{name}[{number}]")


def _whole(trace: TracebackType) -> TracebackType:
    """Return a traceback with the callers of its first frame, as it will be where nobody catches the error."""
    frame = trace.tb_frame.f_back
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return trace
