"""The remedy for gradients that are cleared between their backward pass and their step: restore them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of
from truestep.seams.refs import tensor_keys


class KeepGradients(Change):
    """A step that finds no gradients uses those that `zero_grad()` cleared after the latest backward pass.

    They are cleared again after it. Gradients are not restored if a step has used them, if a later backward pass
    follows, or if they are not finite: a script may clear them to skip a step.
    """

    name = "keep-gradients"
    remedies = ("zero-grad-before-step",)

    def install(self, stack: ExitStack) -> None:
        self._kept: Any = tensor_keys()
        self._used: Any = tensor_keys()
        """Parameters with gradients that a step has used since the latest backward pass."""
        seams.backward.watch(stack, before=self._passes)
        seams.zero_grad.watch(
            stack,
            optimizer=lambda optimizer, set_to_none: self._keep(parameters_of(optimizer), set_to_none),
            module=lambda module, set_to_none: self._keep(module.parameters(), set_to_none),
        )
        seams.step.watch(stack, before=self._before, after=self._after)

    def _passes(self, this: seams.backward.Pass) -> None:
        self._kept.clear()
        self._used.clear()

    def _keep(self, parameters: Any, set_to_none: bool) -> None:
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is not None and parameter not in self._used and parameter not in self._kept:
                self._kept[parameter] = gradient if set_to_none else gradient.clone()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        parameters = list(parameters_of(optimizer))
        kept = {p: self._kept[p] for p in parameters if p in self._kept}
        if not kept or any(p.grad is not None and p.grad.any() for p in parameters):
            return
        if all(gradient.isfinite().all() for gradient in kept.values()):
            self._back = [(p, p.grad) for p in kept]
            for parameter, gradient in kept.items():
                parameter.grad = gradient
            self.applied += 1

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        for parameter, gradient in self.__dict__.pop("_back", ()):
            parameter.grad = gradient
        for parameter in parameters_of(optimizer):
            self._used[parameter] = True
            self._kept.pop(parameter, None)
