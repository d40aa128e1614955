"""``torch.save``, ``torch.load`` and ``load_state_dict``. Seams: inside torch.serialization, and the method."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.events import CheckpointLoaded, CheckpointSaved, Site, StateLoaded
from truestep.probes._patch import patch
from truestep.probes._probe import Probe


class CheckpointProbe(Probe):
    """Tells `CheckpointSaved`, `CheckpointLoaded` and `StateLoaded`."""

    def install(self, stack: ExitStack) -> None:
        from torch import serialization

        scene = self.scene
        module = scene.torch.nn.Module

        def _save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            result = original_save(obj, *args, **kwargs)
            if scene.active:
                self.saved(obj)
            return result

        def _load(*args: Any, **kwargs: Any) -> Any:
            result = original_load(*args, **kwargs)
            if scene.active:
                self._tell(lambda site: CheckpointLoaded(site=site))
            return result

        def load_state_dict(owner: Any, *args: Any, **kwargs: Any) -> Any:
            result = original_state(owner, *args, **kwargs)
            if scene.active:
                self.loaded(owner, result)
            return result

        original_save = patch(stack, serialization, "_save", _save)
        original_load = patch(stack, serialization, "_load", _load)
        original_state = patch(stack, module, "load_state_dict", load_state_dict)

    def _tell(self, make: Any) -> None:
        scene = self.scene
        try:
            scene.emit(make(scene.site(2)))
        except Exception:
            scene.fail()

    def saved(self, obj: Any) -> None:
        def make(site: Site | None) -> CheckpointSaved:
            keys = tuple(str(key) for key in list(obj)[:20]) if isinstance(obj, dict) else (type(obj).__name__,)
            return CheckpointSaved(site=site, holds=keys, whole_model=isinstance(obj, self.scene.torch.nn.Module))

        self._tell(make)

    def loaded(self, owner: Any, result: Any) -> None:
        def make(site: Site | None) -> StateLoaded:
            missing = len(getattr(result, "missing_keys", ()))
            unexpected = len(getattr(result, "unexpected_keys", ()))
            number = self.scene.known("model", owner)
            return StateLoaded(site=site, model=number, missing=missing, unexpected=unexpected)

        self._tell(make)
