"""Backward passes. Seam: the one function through which ``backward`` and ``autograd.grad`` enter the engine."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from typing import Any

from truestep.events import BackwardEnded, GradientsTaken, HandStepped, LossNotFinite, Site
from truestep.probes._patch import patch
from truestep.probes._probe import Probe
from truestep.probes.keep import Keep
from truestep.probes.tape import read_tape, risky_operations

_SCALINGS = ("DivBackward0", "MulBackward0")
_SAMPLED_READS = 4


class BackwardProbe(Probe):
    """Tells `BackwardEnded` and `GradientsTaken`, and at sampled steps what the tape holds."""

    def install(self, stack: ExitStack) -> None:
        import torch.autograd as autograd

        self._events: dict[tuple[Any, ...], BackwardEnded] = {}
        self._taken: dict[tuple[Any, ...], GradientsTaken] = {}
        self._reads_at = (-1, 0)
        self._not_finite = 0
        self.keep = Keep(self.scene)
        scene = self.scene

        def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not scene.active or scene.engine_task() != -1:
                return original(t_outputs, *args, **kwargs)
            accumulates = kwargs.get("accumulate_grad", False)
            begun = time.perf_counter() if scene.sampled else 0.0
            told = self.before(t_outputs, accumulates)
            if begun:
                scene.cost_s += time.perf_counter() - begun
            result = original(t_outputs, *args, **kwargs)
            if told is not None:
                retained = bool(args[1]) if len(args) > 1 else False
                self.after(told, accumulates, retained, bool(args[2]) if len(args) > 2 else False)
                scene.stop()
            return result

        original = patch(stack, autograd, "_engine_run_backward", _engine_run_backward)

    def before(self, outputs: Any, accumulates: bool) -> tuple[Site | None, str, bool] | None:
        """Look at the loss, the gradients and, at sampled steps, the tape; nothing of it is kept."""
        scene = self.scene
        try:
            site = scene.site()
            if not accumulates:
                return site, "", False
            root = outputs[0] if outputs else None
            node = getattr(root, "grad_fn", None)
            kind = "leaf" if node is None else node.name()
            divided = kind in _SCALINGS
            if scene.scaled_by is not None and divided:
                inner = node.next_functions[0][0] if node.next_functions else None
                divided = inner is not None and inner.name() in _SCALINGS
            read = scene.sampled and self._another_read()
            moved = scene.ledger.before_backward(measure=scene.sampled)
            if moved:
                mixed = scene.ledger.mixed_by_hand()
                scene.close_step(HandStepped(site=site, moved=1, mixed=min(1, mixed)))
            self._look_at_value(root, node, site)
            if read:
                read_tape(scene, [o for o in outputs if hasattr(o, "grad_fn")], site)
            self.keep.mark(node, site, backward=True)
        except Exception:
            scene.fail()
            return None
        return site, kind, divided

    def _another_read(self) -> bool:
        """Whether the tape is read at this backward: only the first few of a sampled step."""
        step, reads = self._reads_at
        reads = reads + 1 if step == self.scene.step else 1
        self._reads_at = (self.scene.step, reads)
        return reads <= _SAMPLED_READS

    def _look_at_value(self, root: Any, node: Any, site: Site | None) -> None:
        """Look at the loss itself: every time where that costs no synchronisation, else at sampled steps."""
        scene = self.scene
        scene.last_loss = None
        if type(root) is not scene.torch.Tensor or root.numel() != 1:
            return
        if root.device.type != "cpu" and not scene.sampled:
            return
        value = root.item()
        if isinstance(value, complex):
            return
        if scene.scaled_by is None:
            scene.last_loss = value
        if math.isfinite(value) or self._not_finite >= 8:
            return
        if scene.scaled_by is not None and math.isinf(value):
            return
        self._not_finite += 1
        first = ""
        for held in scene.ledger.by_id.values():
            parameter = held.ref()
            if parameter is not None and parameter.is_floating_point() and not parameter.is_sparse:
                local = getattr(parameter, "_local_tensor", parameter).detach()
                if not bool(scene.torch.isfinite(local).all()):
                    first = scene.parameter_name(held.number)
                    break
        scene.emit(
            LossNotFinite(
                site=site,
                value="nan" if math.isnan(value) else "inf" if value > 0 else "-inf",
                parameters_finite=not first,
                first_parameter=first,
                operations=risky_operations(node),
            )
        )

    def after(self, told: tuple[Site | None, str, bool], accumulates: bool, retained: bool, create: bool) -> None:
        """Look at the gradients again and tell the event."""
        scene = self.scene
        site, root, divided = told
        try:
            if not accumulates:
                taken_key = (id(site), create)
                taken = self._taken.get(taken_key)
                if taken is None:
                    taken = self._taken[taken_key] = GradientsTaken(site=site, create_graph=create)
                scene.emit(taken)
                return
            observed, written, onto_used, onto_fresh = scene.ledger.after_backward()
            scaled = scene.scaled_by is not None
            if scaled:
                scene.scaled_by = None
                for panel in scene.ledger.panels.values():
                    panel.scaled = True
            in_step = scene.depth.step > 0
            key = (id(site), root, divided, retained, observed, onto_used, onto_fresh, written, in_step, scaled, scene.loader)
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = BackwardEnded(
                    site=site,
                    root=root,
                    divided=divided,
                    retained=retained,
                    observed=observed,
                    onto_used=onto_used,
                    onto_fresh=onto_fresh,
                    written=written,
                    in_step=in_step,
                    scaled=scaled,
                    loader=scene.loader,
                )
            scene.emit(event)
        except Exception:
            scene.fail()
