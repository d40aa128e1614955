"""Keep TorchDynamo out of this package's own code, which may run while it compiles the user's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from truestep.seams.patch import patched_codes

_NAMES = ("probes", "seams", "supervision", "rules", "events", "findings", "source", "debugging", "experiments")
_OURS = tuple(f"truestep.{name}" for name in _NAMES)
F = TypeVar("F", bound=Callable[..., Any])

_CACHED = type(functools.lru_cache(lambda: None))

_marked: dict[str, ModuleType] = {}
"""Modules of which the code is marked: it stays so for the whole process."""


def untraced(function: Callable[..., Any]) -> Any:
    """Return a wrapper that TorchDynamo does not trace: the one that torch uses for methods of its optimizers."""
    import torch

    return torch._disable_dynamo(function)  # type: ignore[attr-defined]


def mark_untraced(hook: F) -> F:
    """Mark a hook as `untraced` does, without a frame in between: compiled code calls it and does not trace it."""
    function: Any = getattr(hook, "__func__", hook)
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = None
    return hook


class Aside:
    """Context manager in which TorchDynamo looks at no frame, also of Python's own library."""

    __slots__ = ("_callback",)

    def __enter__(self) -> None:
        self._callback = _eval_frame().set_eval_frame(None)

    def __exit__(self, *failure: object) -> None:
        _eval_frame().set_eval_frame(self._callback)


def _eval_frame() -> Any:
    from torch._C._dynamo import eval_frame

    return eval_frame


def leave_uncompiled(alone: Iterable[CodeType] = ()) -> None:
    """Keep TorchDynamo from compiling the code of this package, which runs when a hook fires below a graph break.

    Args:
        alone: code that does not call the user's code: its callees are not compiled either.
    """
    eval_frame = _eval_frame()
    try:
        action = eval_frame._FrameAction
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
        with_callees = eval_frame._FrameExecStrategy(action.SKIP, action.SKIP)
        mark = eval_frame.set_code_exec_strategy
    except AttributeError:
        return
    seen: set[int] = set()
    todo: list[CodeType] = []
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS) and _marked.get(name) is not module:
            _marked[name] = module
            todo.extend(_codes(module))
    todo.extend(patched_codes())
    while todo:
        code = todo.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        mark(code, strategy)
        todo.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    for code in alone:
        mark(code, with_callees)


def _codes(module: Any) -> list[CodeType]:
    found: list[CodeType] = []
    for value in vars(module).values():
        value = getattr(value, "__wrapped__", value) if type(value) is _CACHED else value
        if isinstance(value, FunctionType):
            found.append(value.__code__)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for inner in vars(value).values():
                function = getattr(inner, "__func__", getattr(inner, "fget", inner))
                while isinstance(function, FunctionType):
                    found.append(function.__code__)
                    function = getattr(function, "__wrapped__", None)
    return found
