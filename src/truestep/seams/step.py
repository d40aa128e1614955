"""Steps of optimizers: torch's global hooks, which run for every optimizer, also for one inside of another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from truestep.seams.tracing import mark_untraced

Hook = Callable[..., None]
"""Gets the optimizer, the arguments of ``step()`` by position (the optimizer first) and those by keyword."""


def watch(stack: ExitStack, *, before: Hook | None = None, after: Hook | None = None) -> None:
    """Call functions around every step until the stack unwinds. A compiled step calls them and does not trace them.

    Args:
        stack: removes the hooks.
        before: called before the step.
        after: called after the step, unless it raised.
    """
    from torch.optim import optimizer as module

    if before is not None:
        stack.callback(module.register_optimizer_step_pre_hook(mark_untraced(before)).remove)
    if after is not None:
        stack.callback(module.register_optimizer_step_post_hook(mark_untraced(after)).remove)
