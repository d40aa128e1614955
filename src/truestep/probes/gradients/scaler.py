"""GradScaler: loss scaled, gradients unscaled, step attempted, scale updated. Seams: its four methods."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import Event, GradientsUnscaled, LossScaled, ScalerBuilt, ScalerStepped, ScalerUpdated
from truestep.probes.context.probe import Probe
from truestep.probes.gradients.scales import mark


class ScalerProbe(Probe):
    """Emits `ScalerBuilt`, `LossScaled`, `GradientsUnscaled`, `ScalerStepped` and `ScalerUpdated`."""

    def install(self, stack: ExitStack) -> None:
        from torch.amp.grad_scaler import GradScaler

        scene = self.scene
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._events: dict[tuple[Any, ...], Event] = {}

        def scale(scaler: Any, outputs: Any) -> Any:
            result = original_scale(scaler, outputs)
            if not compiling() and scene.active and scaler.is_enabled():
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
            before = scene.step
            self.stepping(scaler, optimizer)
            scene.depth.scaler = True
            try:
                result = original_step(scaler, optimizer, *args, **kwargs)
            finally:
                scene.depth.scaler = False
            self.stepped(scaler, optimizer, skipped=scene.step == before)
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
        number, new = self.scene.number("scaler", scaler)
        if new:
            scale = float(getattr(scaler, "_init_scale", 0.0))
            self.scene.emit(ScalerBuilt(scaler=number, enabled=True, scale=scale, site=self.scene.site(2)))
        return number

    def _tell(self, kind: type[Event], **fields: Any) -> None:
        try:
            key = (kind, *((name, id(value) if name == "site" else value) for name, value in fields.items()))
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = kind(**fields)
            self.scene.emit(event)
        except Exception:
            self.scene.fail()

    def scaled(self, scaler: Any, result: Any) -> None:
        self.scene.coast.wake()
        aside = self.scene.unseen.begin(result)
        try:
            self.scene.scales.in_use = True
            mark(result)
            number = self._number(scaler)
            self.scene.scaled_by = number
        except Exception:
            self.scene.fail()
            return
        finally:
            if aside:
                aside.close()
        self._tell(LossScaled, scaler=number)

    def updated(self, scaler: Any) -> None:
        try:
            self._tell(ScalerUpdated, scaler=self._number(scaler))
        except Exception:
            self.scene.fail()

    def unscaled(self, scaler: Any, optimizer: Any) -> None:
        scene = self.scene
        scene.coast.wake()
        aside = scene.unseen.begin()
        try:
            number = scene.known("optimizer", optimizer)
            panel = scene.ledger.panels.get(number or 0)
            if panel is not None:
                panel.scaled = False
                scene.ledger.written(scene.ledger.owned(panel))
            if not scene.depth.scaler:
                if panel is not None and scene.sampled:
                    scene.scales.unscaled(panel, scene.site())
                self._tell(GradientsUnscaled, scaler=self._number(scaler), optimizer=number, site=scene.site())
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()

    def stepping(self, scaler: Any, optimizer: Any) -> None:
        """At a sampled step, emit the losses that made the gradients."""
        scene = self.scene
        if not scene.sampled or type(scaler).scale is not self._class.scale:
            return  # a scaler with a custom `scale` leaves no marks
        aside = scene.unseen.begin()
        try:
            panel = scene.ledger.panels.get(scene.known("optimizer", optimizer) or 0)
            if panel is None:
                return
            scene.ledger.look(panel.everything)
            event = scene.scales.stepping(panel, scene.site(), scaler=True)
            if event is not None:
                scene.emit(event)
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()

    def stepped(self, scaler: Any, optimizer: Any, *, skipped: bool) -> None:
        scene = self.scene
        aside = scene.unseen.begin()
        try:
            number = scene.known("optimizer", optimizer)
            if skipped and number is not None:
                scene.attempts[number] = scene.attempts.get(number, 0) + 1
                panel = scene.ledger.panels.get(number)
                if panel is not None:
                    scene.ledger.skipped(panel)
            site = scene.site()
            self._tell(ScalerStepped, scaler=self._number(scaler), optimizer=number, skipped=skipped, site=site)
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()
