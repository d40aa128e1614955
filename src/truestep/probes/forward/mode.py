"""``model.train()`` and ``model.eval()``. Seam: ``Module.train``, through which both go."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from truestep.events import ModeSet
from truestep.probes.context.probe import Probe, sees
from truestep.seams.patch import patch


class ModeProbe(Probe):
    """Emits `ModeSet` for the outermost call, not for the children that it visits."""

    def install(self, stack: ExitStack) -> None:
        scene, module = self.scene, self.scene.torch.nn.Module
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._wrappers: dict[int, tuple[weakref.ref[Any] | None, int, tuple[int | None, ...]]] = {}

        def train(module: Any, mode: bool = True) -> Any:
            if compiling() or not scene.active or scene.depth.mode:
                return original(module, mode)
            scene.depth.mode = True
            try:
                result = original(module, mode)
            finally:
                scene.depth.mode = False
            self.set(module, bool(mode))
            return result

        original = patch(stack, module, "train", train)

    @sees
    def set(self, module: Any, mode: bool) -> None:
        """Emit the new mode of each model in a module."""
        site = self.scene.site()
        for model in self._parts(module):
            self.scene.tell(ModeSet, model=model, training=mode, site=site)

    def _parts(self, module: Any) -> tuple[int | None, ...]:
        """Return the models in a module: itself, a wrapped module, or the separately called parts of a system."""
        met = self.scene.numbers.count("model")
        ref, models, parts = self._wrappers.get(id(module), (None, -1, ()))
        if ref is None or ref() is not module or models != met:
            known = (self.scene.numbers.known("model", part) for part in module.modules())
            parts = tuple(number for number in known if number is not None) or (None,)
            self._wrappers[id(module)] = (weakref.ref(module), met, parts)
        return parts
