"""Backward passes. Seam: the one function through which ``backward`` and ``autograd.grad`` enter the engine."""

from __future__ import annotations

import math
import sys
import threading
import time
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import BackwardEnded, GradientsTaken, HandStepped, LossNotFinite, LossRead, Site
from truestep.probes.backward.anomaly import Anomaly
from truestep.probes.backward.kept_graphs import Keep
from truestep.probes.backward.nan_search import whereabouts
from truestep.probes.backward.retained_graphs import Retained
from truestep.probes.backward.tape import read_tape, risky_operations
from truestep.probes.context.probe import Probe
from truestep.probes.context.values import has_values

_SCALINGS = ("DivBackward0", "MulBackward0")
_SUMS = ("AddBackward0", "SubBackward0")
_CLASSES = "NllLoss"
"""Prefix of the names of operations that end a loss over classes."""
_SAMPLED_READS = 4
_MOST_BAD_LOSSES = 8
"""Number of losses that are not finite to examine; later ones are only counted."""


class BackwardProbe(Probe):
    """Emits `BackwardEnded` and `GradientsTaken`, and at sampled steps the content of the tape."""

    def install(self, stack: ExitStack) -> None:
        self._events: dict[tuple[Any, ...], BackwardEnded] = {}
        self._kinds: dict[type, str] = {}
        self._method = self.scene.torch.Tensor.backward.__code__
        self._taken: dict[tuple[Any, ...], GradientsTaken] = {}
        self._weights: dict[int, bool] = {}
        self._plain: set[int] = set()
        """Lines with a backward() that does not get a factor for the loss."""
        self._reads_at = (-1, 0)
        self._bad_losses: list[LossNotFinite] = []
        self._tensor = self.scene.torch.Tensor
        self._coast = self.scene.coast
        self._thread = threading.get_ident
        self.keep = Keep(self.scene)
        self.retained = Retained(self.scene)
        self.anomaly = Anomaly(self.scene)
        scene, coast = self.scene, self.scene.coast

        def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if coast.on and self.is_next(t_outputs):
                passing = coast.events[coast.at]
                result = original(t_outputs, *args, **kwargs)
                if self._coast.on:  # nothing woke it meanwhile
                    coast.at += 1
                else:
                    scene.emit(passing)
                return result
            if not scene.active or engine_task() != -1 or (thread() != scene.thread and not scene.take_over()):
                return original(t_outputs, *args, **kwargs)
            coast.wake()
            accumulates = kwargs.get("accumulate_grad", False)
            told = self.before(t_outputs, args, accumulates)
            result = original(t_outputs, *args, **kwargs)
            if told is not None:
                if accumulates:
                    self.after(told, len(args) > 1 and bool(args[1]), t_outputs)
                else:
                    self.taken(told[0], len(args) > 2 and bool(args[2]))
                scene.stop()
            return result

        engine_task, thread = scene.engine_task, threading.get_ident
        original = seams.backward.wrap(stack, _engine_run_backward)

    def is_next(self, outputs: Any) -> bool:
        """Return True if this is the expected backward pass of every round, from a finite loss."""
        coast = self._coast
        aside = self.scene.unseen.begin()
        try:
            root = outputs[0]
            if coast.keys[coast.at] != self._key(root) or self._thread() != coast.thread:
                return False
            if (coast.every or not coast.number & 1) and root.is_cpu:
                if root.numel() != 1:
                    return False
                value = root.item()
                self.scene.last_loss = value
                return bool(value - value == 0.0)
            return True
        except Exception:
            self.scene.fail()
            return False
        finally:
            if aside:
                aside.close()

    def _key(self, root: Any) -> int:
        """Return a key that is equal for the same backward pass of a later round; 0 without one."""
        if type(root) is not self._tensor:
            return 0
        try:
            return id(type(root.grad_fn)) + sys._getframe(5).f_lasti
        except ValueError:
            return 0

    def before(self, outputs: Any, args: tuple[Any, ...], accumulates: bool) -> tuple[Site | None, str, bool] | None:
        """Examine the loss, the gradients and, at sampled steps, the tape; keep no reference to them."""
        scene = self.scene
        begun = 0.0
        aside = scene.unseen.begin(outputs)
        try:
            if scene.sampled:
                begun = scene.clock(outputs[0] if outputs else None)
            method = sys._getframe(3)
            site = scene.sites.quick(5 if method.f_code is self._method else 4)
            retains = accumulates and len(args) > 2 and bool(args[1]) and not args[2]
            if retains or scene.retained:
                self.retained.look(outputs, site, retains=retains)
            if not accumulates:
                return site, "", False
            root = outputs[0] if outputs else None
            node: Any = getattr(root, "grad_fn", None)
            kind = "leaf" if node is None else self._kinds.get(type(node)) or self._kind(node)
            divided = kind in _SCALINGS
            if divided and scene.scaled_by is not None:
                inner = node.next_functions[0][0] if node.next_functions else None
                divided = inner is not None and (inner.name() in _SCALINGS or _divided_terms(inner))
            elif kind in _SUMS:
                divided = _divided_terms(node)
            if not divided and id(site) not in self._plain:
                divided = self._weighed(site, args[0] if args else ())
            with scene.reading:
                moved = scene.ledger.before_backward() if scene.active else 0
                mixed = scene.ledger.mixed_by_hand() if moved else 0
                if scene.sampled and scene.scales.in_use and scene.active:
                    scene.scales.before_backward(outputs, kind)
            if moved:
                scene.close_step(HandStepped(site=site, moved=1, mixed=min(1, mixed)))
            if type(root) is self._tensor and (scene.reads_losses or scene.sampled or not scene.step & 1):
                self._look_at_value(root, node, site)
            if scene.sampled and self._another_read():
                read_tape(scene, [o for o in outputs if hasattr(o, "grad_fn")], site)
                self.anomaly.look(site)
            if not self.keep.full:
                self.keep.mark(node, site, backward=True)
        except Exception:
            scene.fail()
            return None
        finally:
            if begun:
                scene.cost_s += time.perf_counter() - begun
            if aside:
                aside.close()
        return site, kind, divided

    def _weighed(self, site: Site | None, gradients: Any) -> bool:
        """Return True if backward() at this line gets a factor for the loss; decided at its first call."""
        weighed = self._weights.get(id(site))
        if weighed is None:
            first = gradients[0] if gradients else None
            weighed = first is not None and first.numel() == 1 and has_values(first) and first.item() != 1.0
            self._weights[id(site)] = weighed
            if not weighed:
                self._plain.add(id(site))
        return weighed

    def _kind(self, node: Any) -> str:
        """Return the name of an operation; each operation of torch has its type, which is a fast key."""
        name = str(node.name())
        if type(node).__name__ == name:
            self._kinds[type(node)] = name
        return name

    def _another_read(self) -> bool:
        """Return True if the tape is read at this backward pass: at the first few of a sampled step."""
        step, reads = self._reads_at
        reads = reads + 1 if step == self.scene.step else 1
        self._reads_at = (self.scene.step, reads)
        return reads <= _SAMPLED_READS

    def _look_at_value(self, root: Any, node: Any, site: Site | None) -> None:
        """Examine the value of the loss: every time if this needs no synchronization, else at sampled steps."""
        scene = self.scene
        if root.is_cpu or (scene.sampled and not root.is_meta):
            if root.numel() != 1:
                return
        else:
            scene.last_loss = None
            return
        value = root.item()
        if value - value == 0.0:
            scene.last_loss = value if scene.scaled_by is None else None
            if scene.sampled and scene.scaled_by is None and self._kinds.get(type(node), "").startswith(_CLASSES):
                scene.emit(LossRead(value=float(f"{value:.4g}"), site=site))
            return
        before, scene.last_loss = scene.last_loss, None
        if isinstance(value, complex):
            return
        if scene.scaled_by is not None and math.isinf(value):
            return
        scene.bad_loss = True
        if len(self._bad_losses) >= _MOST_BAD_LOSSES:
            scene.emit(self._bad_losses[-1])
            return
        event = LossNotFinite(
            site=site,
            value="nan" if math.isnan(value) else "inf" if value > 0 else "-inf",
            operations=risky_operations(node),
            before=float(f"{before:.3g}") if isinstance(before, float) else None,
            **whereabouts(scene, node, scene.sites.own(1)),
        )
        self._bad_losses.append(event)
        scene.emit(event)

    def taken(self, site: Site | None, create_graph: bool) -> None:
        """Emit the event of a call of ``autograd.grad``."""
        try:
            key = (id(site), create_graph)
            event = self._taken.get(key)
            if event is None:
                event = self._taken[key] = GradientsTaken(site=site, create_graph=create_graph)
            self.scene.emit(event)
        except Exception:
            self.scene.fail()

    def after(self, told: tuple[Site | None, str, bool], retained: bool, outputs: Any) -> None:
        """Examine the gradients again and emit the event."""
        scene = self.scene
        site, root, divided = told
        aside = scene.unseen.begin()
        try:
            with scene.reading:
                if not scene.active:
                    return
                counts = scene.ledger.after_backward()
                if scene.scales.in_use:
                    scene.scales.after_backward(site, seen=scene.sampled)
            scaled = scene.scaled_by is not None
            if scaled:
                scene.scaled_by = None
                for panel in scene.ledger.panels.values():
                    panel.scaled = True
            in_step = scene.depth.step > 0
            key = (id(site), root, divided, retained, counts, in_step, scaled, scene.loader)
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = BackwardEnded(
                    site=site,
                    root=root,
                    divided=divided,
                    retained=retained,
                    observed=counts[0],
                    written=counts[1],
                    onto_used=counts[2],
                    onto_fresh=counts[3],
                    in_step=in_step,
                    scaled=scaled,
                    loader=scene.loader,
                )
            scene.emit(event)
            if self._coast.learning and len(outputs) == 1:
                self._coast.name(self._key(outputs[0]))
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()


def _divided_terms(node: Any) -> bool:
    """Return True if an operation is a sum of divided terms, as in ``ce / n + penalty / n``."""
    terms = node.next_functions if node.name() in _SUMS else ()
    return bool(terms) and all(term is not None and term.name() == "DivBackward0" for term, _ in terms)
