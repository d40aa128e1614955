"""Gradient clipping. Seams: the functions that ``clip_grad_norm_`` and ``clip_grad_value_`` call in their module."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from truestep.events import GradientsClipped
from truestep.probes.context.local_variables import argument
from truestep.probes.context.probe import Probe
from truestep.probes.gradients.gradient_states import FRESH, MIXED, NONE, USED, WRITTEN, ZEROED, looks_zero
from truestep.seams.patch import patch


class ClipProbe(Probe):
    """Emits `GradientsClipped`; clipping is a write in place that does not clear."""

    def install(self, stack: ExitStack) -> None:
        import torch.nn.utils.clip_grad as module

        scene, coast = self.scene, self.scene.coast
        self._events: dict[tuple[Any, ...], GradientsClipped] = {}
        compiling = scene.torch.compiler.is_dynamo_compiling

        def _clip_grads_with_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or not scene.active:
                return original_clip(parameters, max_norm, *args, **kwargs)
            listed = [parameters] if isinstance(parameters, scene.torch.Tensor) else list(parameters)
            key = self.key(listed, max_norm) if coast.on or coast.learning else 0
            if coast.on:
                if coast.keys[coast.at] == key:
                    coast.at += 1
                    return original_clip(listed, max_norm, *args, **kwargs)
                coast.wake()
            self.before("norm", listed, max_norm, key=key)
            result = original_clip(listed, max_norm, *args, **kwargs)
            self.written(listed)
            return result

        def _group_tensors_by_device_and_dtype(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not compiling() and scene.active and sys._getframe(1).f_code.co_name == "clip_grad_value_":
                self.by_value(tensors[0], sys._getframe(1))
            return original_group(tensors, *args, **kwargs)

        original_clip = patch(stack, module, "_clip_grads_with_norm_", _clip_grads_with_norm_)
        original_group = patch(stack, module, "_group_tensors_by_device_and_dtype", _group_tensors_by_device_and_dtype)

    def key(self, parameters: Sequence[Any], limit: Any) -> int:
        """Return a key that is equal for the same clipping of a later round; 0 if the limit is not a number."""
        try:
            return hash((id(self.scene.site(2)), len(parameters), limit)) if isinstance(limit, int | float) else 0
        except Exception:
            self.scene.fail()
            return 0

    def written(self, parameters: Sequence[Any]) -> None:
        """Record that these gradients were written to in place."""
        aside = self.scene.unseen.begin()
        try:
            self.scene.ledger.written(self.scene.ledger.among(parameters))
        except Exception:
            self.scene.fail()
        finally:
            if aside:
                aside.close()

    def by_value(self, grads: Sequence[Any], frame: Any) -> None:
        """Find the parameters of the gradients that are about to be clamped."""
        scene = self.scene
        scene.coast.wake()
        aside = scene.unseen.begin()
        try:
            wanted = {id(grad) for grad in grads}
            owners = []
            for held in scene.ledger.by_id.values():
                parameter = held.ref()
                if parameter is not None and parameter.grad is not None and id(parameter.grad) in wanted:
                    owners.append(parameter)
            given = len(grads)
            limit = argument(frame, "clip_value")
            self.before("value", owners, limit, given=given)
            for held in scene.ledger.by_id.values():
                parameter = held.ref()
                if parameter is not None and parameter.grad is not None and id(parameter.grad) in wanted:
                    held.version = WRITTEN
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()

    def _foreign(self, parameters: Sequence[Any]) -> int:
        """Return the number of parameters outside of optimizers and without gradients; 0 if any other is included."""
        for parameter in parameters:
            held = self.scene.ledger.held(parameter)
            if parameter.grad is not None or (held is not None and held.panel is not None and held.panel.number):
                return 0
        return len(parameters)

    def before(
        self, kind: str, parameters: Sequence[Any], limit: Any, *, given: int | None = None, key: int = 0
    ) -> None:
        """Examine the gradients right before they are clipped."""
        scene = self.scene
        aside = scene.unseen.begin()
        try:
            site = scene.site(2)
            ledger = scene.ledger
            states: dict[int, int] = {}
            observed = 0
            owners: dict[int, int] = {}
            clipped = {id(p) for p in parameters}
            for held in ledger.among(parameters):
                grad = held.look()
                observed += 1
                state = held.state
                if state == ZEROED and grad is not None and (scene.sampled or grad.is_cpu) and looks_zero(grad):
                    state = NONE
                states[state] = states.get(state, 0) + 1
                if held.panel is not None and held.panel.number:
                    owners[held.panel.number] = owners.get(held.panel.number, 0) + 1
            owner = max(owners, key=lambda number: owners[number], default=None)
            unclipped = 0
            scaled = False
            if owner is not None:
                if scene.sampled:
                    for number in owners:
                        ledger.panels[number].unclipped = ledger.ratio(ledger.panels[number])
                scaled = any(ledger.panels[number].scaled for number in owners)
                for held in ledger.panels[owner].sentinels:
                    parameter = held.ref()
                    if parameter is not None and id(parameter) not in clipped and held.state in (FRESH, MIXED):
                        unclipped += 1
            max_norm = float(limit) if isinstance(limit, int | float) else math.nan
            foreign = self._foreign(parameters) if observed == 0 else 0
            look: tuple[Any, ...] = (kind, id(site), len(parameters), observed, max_norm, tuple(sorted(states.items())))
            look += (scaled, owner, foreign, unclipped, tuple(sorted(owners)))
            event = self._events.get(look)
            if event is None:
                event = self._events[look] = GradientsClipped(
                    kind=kind,
                    site=site,
                    given=len(parameters) if given is None else given,
                    observed=observed,
                    max_norm=max_norm,
                    fresh=states.get(FRESH, 0) + states.get(MIXED, 0),
                    used=states.get(USED, 0),
                    absent_grad=states.get(NONE, 0),
                    scaled=scaled,
                    optimizer=owner,
                    foreign=foreign,
                    unclipped=unclipped,
                    optimizers=tuple(sorted(owners)),
                )
            scene.emit(event)
            if scene.coast.learning:
                scene.coast.name(key)
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()
