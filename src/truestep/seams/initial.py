"""Functions of ``torch.nn.init`` that draw the first values of weights.

``normal_``, ``uniform_``, ``xavier_normal_``, ``xavier_uniform_`` and ``trunc_normal_`` call private functions of their
module, also where a script has imported them by name; the others are replaced themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch

_DRAWING = (
    "_no_grad_normal_", "_no_grad_uniform_", "_no_grad_trunc_normal_", "kaiming_normal_", "kaiming_uniform_",
    "orthogonal_",
)  # fmt: skip


def watch(stack: ExitStack, drawn: Callable[[Any], object]) -> None:
    """Call a function with each tensor that gets random first values, until the stack unwinds."""
    from torch.nn import init

    for name in _DRAWING:
        original = getattr(init, name, None)
        if original is not None:
            patch(stack, init, name, _telling(original, drawn))


def _telling(original: Callable[..., Any], drawn: Callable[[Any], object]) -> Callable[..., Any]:
    @functools.wraps(original)
    def initialise(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        drawn(result)
        return result

    return initialise
