"""``model.train()`` and ``model.eval()``. Seam: ``Module.train``, through which both go."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.events import ModeSet
from truestep.probes._patch import patch
from truestep.probes._probe import Probe


class ModeProbe(Probe):
    """Tells `ModeSet` for the outermost call, not for the children it goes down to."""

    def install(self, stack: ExitStack) -> None:
        scene, module = self.scene, self.scene.torch.nn.Module
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._events: dict[tuple[Any, ...], ModeSet] = {}

        def train(module: Any, mode: bool = True) -> Any:
            if compiling() or not scene.active or scene.depth.mode:
                return original(module, mode)
            scene.depth.mode = True
            try:
                result = original(module, mode)
            finally:
                scene.depth.mode = False
            self.told(module, mode)
            return result

        original = patch(stack, module, "train", train)

    def told(self, module: Any, mode: bool) -> None:
        scene = self.scene
        try:
            number = scene.known("model", module)
            site = scene.site()
            key = (number, bool(mode), id(site))
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = ModeSet(model=number, training=bool(mode), site=site)
            scene.emit(event)
        except Exception:
            scene.fail()
