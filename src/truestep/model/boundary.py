"""Notes on torch's errors about inputs of a model or a loss that do not fit.

Nothing is checked before an error, and nothing is attached to the model: a hook would be pickled with it, and prevent
`torch.jit.script`. When an error passes through the context of a forward pass or of an evaluation, a post-mortem
examines its frames, and its result is added to the error as a note: the same exception goes on, of the same type, with
its traceback, and names the tensors with different devices, types or shapes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any, Generic, TypeVar

import torch
from torch import nn

Given = TypeVar("Given")
_ROOMS = re.compile(r"(on|to) the same device|is not on the expected device")
_KINDS = (RuntimeError, ValueError, IndexError)
"""Types of errors that torch raises for tensors that do not fit."""


class WithPostMortem(AbstractContextManager[Given], Generic[Given]):
    """A context manager that adds notes on inputs that do not fit to torch's errors, around another context manager.

    Args:
        context: the context manager to enter and leave.

    Example:
        >>> from contextlib import nullcontext
        >>> model = nn.Linear(3, 1)
        >>> images = torch.ones(2, 3, dtype=torch.float64)
        >>> try:
        ...     with WithPostMortem(nullcontext()):
        ...         model(images)
        ... except RuntimeError as error:
        ...     print(error.__notes__[0])
        post-mortem[different-types]: `images` is float64, the weights of `model` are float32
          = help: write `images = images.float()` where it is made
    """

    __slots__ = ("_context",)

    def __init__(self, context: AbstractContextManager[Given]) -> None:
        self._context = context

    def __enter__(self) -> Given:
        return self._context.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool | None:
        swallowed = self._context.__exit__(kind, error, trace)
        if error is not None:
            add_post_mortem(error)
        return swallowed


def add_post_mortem(error: BaseException) -> None:
    """Add the post-mortem of an error of torch to it as a note, once; without a certain cause nothing is added."""
    if not isinstance(error, _KINDS) or isinstance(error, torch.OutOfMemoryError):
        return
    if error.__traceback__ is None or _has_post_mortem(error):
        return
    from truestep.postmortem import examine
    from truestep.probes import Scene

    trace = error.__traceback__
    try:
        error.__traceback__ = _whole(trace)
        found = examine(error, Scene(torch))
    finally:
        error.__traceback__ = trace
    if found is not None:
        lines = [f"post-mortem[{found.slug}]: {found.message}"]
        lines += [f"  = {key}: {text}" for key, text in (*found.facts, ("help", found.help)) if text]
        error.add_note("\n".join(lines))
    elif _ROOMS.search(str(error)) and (note := _elsewhere(trace)):
        error.add_note(note)


def _has_post_mortem(error: BaseException) -> bool:
    return any(note.startswith("post-mortem[") for note in getattr(error, "__notes__", ()))


def _elsewhere(trace: TracebackType) -> str:
    """Return a note on the arguments of a model on another device than its weights; "" if that is uncertain."""
    for model, frame in _forwards(trace):
        rooms = {parameter.device for parameter in model.parameters()}
        strangers = [(name, tensor.device) for name, tensor in _tensors(_arguments(frame), "") if tensor.dim()]
        strangers = [(name, device) for name, device in strangers if device not in rooms]
        if len(rooms) == 1 and strangers:
            (room,), (name, device) = rooms, strangers[0]
            kind = type(model).__name__
            return (
                f"post-mortem[different-devices]: `{name}` is on {device}, the weights of {kind} are on {room}\n"
                f"  = help: take batches from `run.train()` or `run.batches()`, or write `{name}.to('{room}')`"
            )
    return ""


def _forwards(trace: TracebackType) -> Iterator[tuple[nn.Module, FrameType]]:
    """Yield the modules with a forward pass that the error passed through, outermost first."""
    from truestep.probes.context.local_variables import argument

    step: TracebackType | None = trace
    while step is not None:
        frame = step.tb_frame
        module = argument(frame, "self") if frame.f_code.co_name == "forward" else None
        if isinstance(module, nn.Module) and getattr(type(module).forward, "__code__", None) is frame.f_code:
            yield module, frame
        step = step.tb_next


def _arguments(frame: FrameType) -> dict[str, Any]:
    """Return the current values of a function's arguments, by name."""
    from truestep.probes.context.local_variables import variables

    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    held = variables(frame)
    return {name: held[name] for name in code.co_varnames[1:count] if name in held}


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in an argument, with the expressions that lead to them."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{name}[{key!r}]" if name else str(key))
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from _tensors(item, f"{name}[{number}]")


def _whole(trace: TracebackType) -> TracebackType:
    """Return a traceback with the callers of its first frame added, as if the error were uncaught."""
    frame = trace.tb_frame.f_back
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return trace
