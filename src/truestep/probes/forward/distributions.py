"""Draws from distributions. Seams: ``sample`` and ``log_prob`` of the classes of ``torch.distributions``."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any

from truestep.probes.context.probe import Probe, sees
from truestep.seams.patch import patch
from truestep.seams.weaving import compiling


class DrawProbe(Probe):
    """Enters samples at sampled steps."""

    def install(self, stack: ExitStack) -> None:
        import torch.distributions as module

        base = module.Distribution
        kinds = [base, *(one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base))]
        for kind in dict.fromkeys(kinds):
            if "sample" in vars(kind):
                self._watch_sample(stack, kind)
            if "log_prob" in vars(kind):
                self._watch_probability(stack, kind)

    def _watch_sample(self, stack: ExitStack, kind: Any) -> None:
        scene, original = self.scene, vars(kind)["sample"]
        compiles, grad_enabled = compiling(scene.torch), scene.torch.is_grad_enabled

        @functools.wraps(original)
        def sample(distribution: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(distribution, *args, **kwargs)
            if not compiles() and scene.sampling.on and scene.active and grad_enabled():
                self.drawn(distribution, result)
            return result

        patch(stack, kind, "sample", sample)

    def _watch_probability(self, stack: ExitStack, kind: Any) -> None:
        scene, original = self.scene, vars(kind)["log_prob"]
        compiles = compiling(scene.torch)

        @functools.wraps(original)
        def log_prob(distribution: Any, value: Any) -> Any:
            if not compiles() and scene.sampling.on and scene.active:
                self.scored(distribution, value)
            return original(distribution, value)

        patch(stack, kind, "log_prob", log_prob)

    @sees
    def drawn(self, distribution: Any, sample: Any) -> None:
        """Enter a sample of a distribution that has ``rsample`` too."""
        if type(sample) is self.scene.torch.Tensor and not sample.requires_grad and distribution.has_rsample:
            self.scene.draws.add(distribution, sample, self.scene.site())

    @sees
    def scored(self, distribution: Any, value: Any) -> None:
        """Enter that a probability is computed."""
        self.scene.draws.scored(distribution, value)
