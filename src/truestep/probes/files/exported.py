"""Models that are exported and saved. Seams: functions of torch.export and torch.jit, and `save` of traced modules."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any, Literal

from truestep import seams
from truestep.events import ModelExported
from truestep.probes.context.names import arguments
from truestep.probes.context.probe import Probe, sees
from truestep.seams.saving import Exporting

_MOST_EXPORTS = 100
_FIRST: dict[Exporting, str] = {"torch.export.export": "mod", "torch.jit.trace": "func"}
"""Functions that export, and the name of their first parameter."""
_SAVES: dict[Exporting, str] = {"torch.export.save": "ep", "torch.jit.save": "m"}


class ExportProbe(Probe):
    """Emits `ModelExported` when the program saves the result of an export."""

    def install(self, stack: ExitStack) -> None:
        self._exported: dict[int, ModelExported] = {}
        for name in _FIRST:
            self._watch_export(stack, name)
        for name in _SAVES:
            self._watch_save(stack, name)
        self._watch_method(stack, "ScriptModule")
        self._watch_method(stack, "RecursiveScriptModule")

    def _watch_export(self, stack: ExitStack, name: Exporting) -> None:
        probe, scene, first = self, self.scene, _FIRST[name]

        def export(*args: Any, **kwargs: Any) -> Any:
            if original is None or not scene.active:
                return None if original is None else original(*args, **kwargs)
            exporting = probe.read(args[0] if args else kwargs.get(first), name, sys._getframe(1))
            if exporting is None:
                return original(*args, **kwargs)
            scene.coast.wake()
            with scene.aside():  # the calls that follow do not evaluate the model
                result = original(*args, **kwargs)
            probe.exported(result, exporting)
            return result

        original = seams.saving.wrap_export(stack, name, export)
        _take_name(export, original)

    def _watch_save(self, stack: ExitStack, name: Exporting) -> None:
        probe, scene, first = self, self.scene, _SAVES[name]

        def save(*args: Any, **kwargs: Any) -> Any:
            result = None if original is None else original(*args, **kwargs)
            if scene.active:
                probe.saved(args[0] if args else kwargs.get(first), sys._getframe(1))
            return result

        original = seams.saving.wrap_export(stack, name, save)
        _take_name(save, original)

    def _watch_method(self, stack: ExitStack, kind: Literal["ScriptModule", "RecursiveScriptModule"]) -> None:
        probe, scene = self, self.scene

        def save(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = None if original is None else original(self, *args, **kwargs)
            if scene.active:
                probe.saved(self, sys._getframe(1))
            return result

        original = seams.saving.wrap_method(stack, kind, save)
        _take_name(save, original)

    @sees
    def read(self, model: Any, by: Exporting, frame: FrameType) -> ModelExported | None:
        """Return the modes of a model that code of the user exports; None for other calls and other objects."""
        scene = self.scene
        if scene.sites.kind(frame.f_code) or not isinstance(model, scene.torch.nn.Module):
            return None
        site = scene.sites.at(frame)
        active = list(_active(model, "", scene.torch.nn)) if model.training else []
        return ModelExported(
            site=site,
            by=by,
            name=arguments(site, (_FIRST[by],))[0],
            training=bool(model.training),
            layers=len(active),
            layer=active[0][0] if active else "",
            kind=active[0][1] if active else "",
        )

    @sees
    def exported(self, result: Any, exporting: ModelExported) -> None:
        """Remember the modes of the model that a result was exported from."""
        number, _ = self.scene.numbers.of("exported program", result)
        if len(self._exported) < _MOST_EXPORTS:
            self._exported[number] = exporting

    @sees
    def saved(self, result: Any, frame: FrameType) -> None:
        """Emit that code of the user saved the result of an export, once for each."""
        scene = self.scene
        number = scene.numbers.known("exported program", result)
        if number is None or scene.sites.kind(frame.f_code):
            return
        one = self._exported.pop(number, None)
        if one is not None:
            scene.tell(
                ModelExported,
                site=one.site,
                saved=scene.sites.at(frame),
                by=one.by,
                name=one.name,
                training=one.training,
                layers=one.layers,
                layer=one.layer,
                kind=one.kind,
            )


def _active(module: Any, prefix: str, nn: Any) -> Iterator[tuple[str, str]]:
    """Yield name and class of each layer that acts as in training, and has no module around it in evaluation mode."""
    for name, child in module.named_children():
        if child.training:
            yield from _active(child, f"{prefix}{name}.", nn)
    if _acts(module, nn):
        yield prefix.rstrip("."), type(module).__name__


def _acts(module: Any, nn: Any) -> bool:
    """Return True if a layer computes other outputs in train mode, apart from the layers in it."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return bool(module.p > 0)
    if isinstance(module, nn.RNNBase):
        return bool(module.dropout > 0 and module.num_layers > 1)  # it is between the layers
    if isinstance(module, nn.MultiheadAttention):
        return bool(module.dropout > 0)
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def _take_name(wrapper: Any, original: Any) -> None:
    """Give a wrapper the name and the documentation of the function that it replaces."""
    if original is not None:
        functools.update_wrapper(wrapper, original)
