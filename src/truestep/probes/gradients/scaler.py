"""GradScaler: loss scaled, gradients unscaled, step attempted, scale updated. Seams: its four methods."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import GradientScaleRead, GradientsUnscaled, LossScaled, ScalerBuilt, ScalerStepped, ScalerUpdated
from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.scales import mark


class ScalerProbe(Probe):
    """Emits `ScalerBuilt`, `LossScaled`, `GradientsUnscaled`, `ScalerStepped` and `ScalerUpdated`."""

    def install(self, stack: ExitStack) -> None:
        from torch.amp.grad_scaler import GradScaler

        scene = self.scene
        compiling = scene.torch.compiler.is_dynamo_compiling

        def scale(scaler: Any, outputs: Any) -> Any:
            result = original_scale(scaler, outputs)
            if not compiling() and scene.active and scaler.is_enabled():
                scene.unseen.met(result)
                self.scaled(scaler, result)
            return result

        def unscale_(scaler: Any, optimizer: Any) -> None:
            original_unscale(scaler, optimizer)
            if not compiling() and scene.active and scaler.is_enabled():
                self.unscaled(scaler, optimizer)

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or not scene.active or not scaler.is_enabled():
                return original_step(scaler, optimizer, *args, **kwargs)
            scene.coast.wake()
            before = scene.sampling.step
            self.stepping(scaler, optimizer)
            scene.depth.scaler = True
            try:
                result = original_step(scaler, optimizer, *args, **kwargs)
            finally:
                scene.depth.scaler = False
            self.stepped(scaler, optimizer, skipped=scene.sampling.step == before)
            return result

        def update(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original_update(scaler, *args, **kwargs)
            if not compiling() and scene.active and scaler.is_enabled():
                self.updated(scaler)

        self._class = GradScaler
        original_scale = seams.scaler.wrap(stack, "scale", scale)
        original_unscale = seams.scaler.wrap(stack, "unscale_", unscale_)
        original_step = seams.scaler.wrap(stack, "step", step)
        original_update = seams.scaler.wrap(stack, "update", update)

    def _number(self, scaler: Any) -> int:
        number, new = self.scene.numbers.of("scaler", scaler)
        if new:
            scale = float(getattr(scaler, "_init_scale", 0.0))
            self.scene.emit(ScalerBuilt(scaler=number, enabled=True, scale=scale, site=self.scene.site(2)))
        return number

    @sees
    def scaled(self, scaler: Any, result: Any) -> None:
        scene = self.scene
        scene.coast.wake()
        scene.scales.in_use = True
        mark(result)
        number = scene.scales.scaled_by = self._number(scaler)
        scene.tell(LossScaled, scaler=number)

    @sees
    def unscaled(self, scaler: Any, optimizer: Any) -> None:
        scene = self.scene
        scene.coast.wake()
        number = scene.numbers.known("optimizer", optimizer)
        panel = scene.ledger.panels.get(number or 0)
        if panel is not None:
            panel.scaled = False
            scene.ledger.written(scene.ledger.owned(panel))
        if not scene.depth.scaler:
            site = scene.site()
            if panel is not None and scene.sampling.on:
                scene.scales.unscaled(panel, site)
            scene.tell(GradientsUnscaled, scaler=self._number(scaler), optimizer=number, site=site)

    @sees
    def stepping(self, scaler: Any, optimizer: Any) -> None:
        """At a sampled step, emit the losses that made the gradients."""
        scene = self.scene
        if not scene.sampling.on or type(scaler).scale is not self._class.scale:
            return  # a scaler with a custom `scale` leaves no marks
        panel = scene.ledger.panels.get(scene.numbers.known("optimizer", optimizer) or 0)
        if panel is not None:
            scene.ledger.look(panel.everything)
            read = scene.scales.stepping(panel, scene.site(), scaler=True)
            if read is not None:
                scene.tell(GradientScaleRead, **read)

    @sees
    def stepped(self, scaler: Any, optimizer: Any, *, skipped: bool) -> None:
        scene = self.scene
        number = scene.numbers.known("optimizer", optimizer)
        if skipped and number is not None:
            scene.ledger.skipped(number)
        site = scene.site()
        scene.tell(ScalerStepped, scaler=self._number(scaler), optimizer=number, skipped=skipped, site=site)

    @sees
    def updated(self, scaler: Any) -> None:
        self.scene.tell(ScalerUpdated, scaler=self._number(scaler))
