"""Switch dropout off: a batch may be learned by heart only without it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch

_FUNCTIONS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
_PLACE = 4
"""Position of `dropout_p` among the arguments of `scaled_dot_product_attention`."""


class NoDropout(Change):
    """Dropout functions return their input, and attention is computed without dropout.

    Recurrent modules with several layers keep their dropout, which is inside one kernel.
    """

    name = "no-dropout"

    def install(self, stack: ExitStack) -> None:
        import torch

        for function in (*_FUNCTIONS, *(f"{name}_" for name in _FUNCTIONS)):

            def same(input: Any, p: float = 0.5, train: bool = True) -> Any:
                self.applied += bool(train)
                return input

            patch(stack, torch._VF, function, same)

        def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
            arguments = list(args)
            if len(arguments) > _PLACE and arguments[_PLACE]:
                arguments[_PLACE] = 0.0
                self.applied += 1
            elif kwargs.get("dropout_p"):
                kwargs["dropout_p"] = 0.0
                self.applied += 1
            return attention(*arguments, **kwargs)

        functional = torch.nn.functional
        attention = patch(stack, functional, "scaled_dot_product_attention", scaled_dot_product_attention)
