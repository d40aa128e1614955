"""Draws from distributions. Seams: ``sample`` and ``log_prob`` of ``torch.distributions``, and ``torch.normal``."""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep.probes.context.local_variables import variables
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import is_transformed
from truestep.seams.code.weaving import compiling, teach_script
from truestep.seams.patch import patch


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
        self._watch_normal(stack)

    def _watch_normal(self, stack: ExitStack) -> None:
        scene, original = self.scene, self.scene.torch.normal
        compiles, tensor, frame = compiling(scene.torch), scene.torch.Tensor, sys._getframe

        @functools.wraps(original, assigned=("__name__", "__doc__"))
        def normal(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if len(args) > 1 and isinstance(args[0], tensor) and not compiles() and scene.sampling.on and scene.active:
                self.drawn_by_function(frame(1), args[0], args[1], result)
            return result

        normal.__module__, normal.__qualname__ = "torch", "normal"
        patch(stack, scene.torch, "normal", normal)
        teach_script(stack, original, normal)

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
    def drawn_by_function(self, caller: FrameType, mean: Any, spread: Any, sample: Any) -> None:
        """Enter a sample of ``torch.normal``, if the user's frame has mean and spread with a gradient."""
        scene, tensor = self.scene, self.scene.torch.Tensor
        if scene.sites.kind(caller.f_code) or type(sample) is not tensor or not isinstance(spread, tensor):
            return
        if is_transformed(sample):
            return
        values: list[Any] = [value for value in variables(caller).values() if type(value) is tensor]
        given = [value for value in values if value.grad_fn is not None and not is_transformed(value)]
        made = [_source(one, given) for one in (mean, spread)]
        if None not in made:
            scene.draws.add_of_function("torch.normal", made, sample, scene.site())

    @sees
    def scored(self, distribution: Any, value: Any) -> None:
        """Enter that a probability is computed."""
        self.scene.draws.scored(distribution, value)


def _source(value: Any, given: list[Any]) -> Any:
    """Return the operation that made a value, or the tensor of which it is the detached alias; None without one."""
    if value.grad_fn is not None:
        return value.grad_fn
    if not has_values(value):
        return None
    place, shape = value.data_ptr(), value.shape
    return next(
        (one.grad_fn for one in given if one.shape == shape and has_values(one) and one.data_ptr() == place), None
    )
