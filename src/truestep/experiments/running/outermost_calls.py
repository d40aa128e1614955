"""The calls of models that a script itself makes: outermost ones, outside of backward passes and of compilers."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch
from truestep.seams.weaving import weave


class _Depth(threading.local):
    inside = 0


class _Awake:
    """Nothing is learned, so nothing is only compared (see `probes/context/repetition.py`)."""

    inside = False
    on = False


class RootCalls:
    """Told of the outermost call of every module, whatever it calls inside.

    Subclasses say what is done: `entered` gives a token, and `left` gets it back, also after an exception.
    """

    def __init__(self) -> None:
        self._depth = _Depth()
        self._trainable: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def listen(self, stack: ExitStack) -> bool:
        """Begin to listen, until the stack unwinds; return False where torch's source is not the known one."""
        import torch

        self._engine_task = torch._C._current_graph_task_id
        names = {
            "_truestep_compiling": torch.compiler.is_dynamo_compiling,
            "_truestep_depth": self._depth,
            "_truestep_coast": _Awake,
            "_truestep_enter": self._enter,
            "_truestep_leave": self._leave,
        }
        woven = weave(torch.nn.Module._wrapped_call_impl, names)
        if woven is None:
            return False
        patch(stack, torch.nn.Module, "_wrapped_call_impl", woven)
        patch(stack, torch.nn.Module, "__call__", woven)
        return True

    def entered(self, module: Any) -> Any:
        """Do what is to be done before a call."""

    def left(self, token: Any) -> None:
        """Do what is to be done after it."""

    def is_model(self, module: Any) -> bool:
        """Whether a module has parameters: a loss and a transform have none."""
        known = self._trainable.get(module)
        if known is None:
            known = self._trainable[module] = next(module.parameters(), None) is not None
        return known

    def _enter(self, module: Any, args: tuple[Any, ...], depth_of_caller: int = 2) -> Any:
        if self._depth.inside or self._engine_task() != -1:
            return None
        token = self.entered(module)
        self._depth.inside = 1
        return (token,)

    def _leave(self, token: Any, result: Any, depth_of_caller: int = 2) -> None:
        if token is not None:
            self._depth.inside = 0
            self.left(token[0])
