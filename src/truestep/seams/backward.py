"""Backward passes: the one function through which ``backward()`` and ``autograd.grad`` enter torch's engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from truestep.seams.patch import patch


class Pass(NamedTuple):
    """One call of ``backward()``: its roots, a sequence of tensors, and the two flags that keep its graph."""

    roots: Any
    retain_graph: bool
    create_graph: bool


def wrap(stack: ExitStack, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the entry of the engine until the stack unwinds, and return the one before it.

    The wrapper is called without a frame in between, for every pass: also for ``autograd.grad``, and for a pass inside
    of another one (a checkpointed block, a hook).

    Args:
        stack: restores it.
        wrapper: takes the roots, gradients, ``retain_graph`` and ``create_graph`` by position, and more.
    """
    import torch.autograd

    original: Callable[..., Any] = patch(stack, torch.autograd, "_engine_run_backward", wrapper)
    return original


def watch(
    stack: ExitStack,
    *,
    before: Callable[[Pass], object] | None = None,
    after: Callable[[Pass], object] | None = None,
) -> None:
    """Call functions around every outermost ``backward()`` until the stack unwinds.

    Passes of ``autograd.grad`` and passes inside of another one are not watched.

    Args:
        stack: restores the engine's entry.
        before: called before the engine runs.
        after: called when it has run; not called after an exception.
    """

    def _engine_run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("accumulate_grad", False) or in_engine():
            return original(roots, *args, **kwargs)
        this = Pass(roots, bool(args[1]), bool(args[2]))
        if before is not None:
            before(this)
        result = original(roots, *args, **kwargs)
        if after is not None:
            after(this)
        return result

    in_engine = engine_state()
    original = wrap(stack, _engine_run_backward)


def engine_state() -> Callable[[], bool]:
    """Return a function that returns True inside of a backward pass: in a hook, or while a block is recomputed."""
    import torch

    task = torch._C._current_graph_task_id
    return lambda: task() != -1
