"""The remedy for a log-softmax over another dimension than the classes: it runs over the classes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.sources import Sources, named
from truestep.seams.patch import patch

_CLASSES = 1
"""Dimension of the classes in `nll_loss`."""


class SoftmaxOverClasses(Change):
    """A log-softmax directly before `nll_loss` runs over dimension 1, and then in evaluation too.

    It is recognized as wrong by sizes: it ran over another number of values than there are classes.
    """

    name = "softmax-over-classes"
    remedies = ("softmax-wrong-dim",)
    alters_loss = True

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import functional

        self._sources = Sources()
        softmax, compiling = torch.log_softmax, torch.compiler.is_compiling

        def over_classes(input: Any, *args: Any, **kwargs: Any) -> Any:
            self.applied += 1
            return softmax(input, _CLASSES if input.dim() > 1 else 0, dtype=kwargs.get("dtype"))

        def nll_loss(input: Any, *args: Any, **kwargs: Any) -> Any:
            found = None if compiling() else self._sources.source(input)
            if found is not None and found[2].shape == input.shape and input.dim() > 1:
                dim = found[3][0] if found[3] else found[4].get("dim")
                if dim is not None and input.shape[dim] != input.shape[_CLASSES]:
                    self._sources.consumed(found[1])
                    input = over_classes(found[2], dtype=found[4].get("dtype"))
            return nll(input, *args, **kwargs)

        for owner in (functional, torch, torch.Tensor):
            recorded = self._sources.recorded(owner, "log_softmax", over_classes)
            patch(stack, owner, "log_softmax", recorded)
        nll = patch(stack, functional, "nll_loss", named(nll_loss, functional, "nll_loss"))
