"""With a GradScaler: the losses that made the gradients of a step, and if the gradients carry the scale.

Only sampled steps are examined. The node of a scaled loss carries a mark in its metadata, so that the tape shows the
backward passes that come from it, even through later operations on the loss.
"""

from __future__ import annotations

import math
from typing import Any

from truestep.events import Site
from truestep.probes.gradients.gradient_states import FRESH, MIXED, Held, Panel, here, measurable
from truestep.probes.gradients.ledger import Ledger
from truestep.seams.refs import Ref

_MARK = "truestep scaled"
_NODES = 256
"""Number of operations, from the loss on, that are searched for a mark."""
_MEASURED = 8


def mark(result: Any) -> None:
    """Mark the operations that made scaled losses."""
    for tensor in result if isinstance(result, list | tuple) else (result,):
        node = getattr(tensor, "grad_fn", None)
        if node is not None:
            node.metadata[_MARK] = True
        elif isinstance(tensor, list | tuple):
            mark(tensor)


def scaled(roots: list[Any]) -> bool | None:
    """Return True if a scaled loss is on the tape below these operations; None if unknown."""
    seen, queue = set(roots), list(roots)
    for node in queue:
        if _MARK in node.metadata:
            return True
        if len(queue) > _NODES or node.name() == "CompiledFunctionBackward":
            return None
        fresh = [n for n, _ in node.next_functions if n is not None and n not in seen]
        seen.update(fresh)
        queue.extend(fresh)
    return False


class _Window:
    """The gradients of one optimizer since they were last cleared or used."""

    __slots__ = ("late", "norm", "plain", "scaled", "unknown", "unscaled", "unscaled_at")

    def __init__(self, *, unknown: bool) -> None:
        self.unknown = unknown
        self.scaled: Site | None = None
        """Backward pass of a scaled loss, while its gradients carry the scale."""
        self.plain: Site | None = None
        """Backward pass of an unscaled loss, into gradients that the scaler has yet to divide."""
        self.late: Site | None = None
        """Backward pass of a scaled loss into gradients that were unscaled before."""
        self.unscaled = False
        self.unscaled_at: Site | None = None
        self.norm: float | None = None


class Scales:
    """Follows the windows of all optimizers."""

    def __init__(self, ledger: Ledger) -> None:
        self.in_use = False
        self.scaled_by: int | None = None
        """The scaler that scaled the loss of the next backward pass."""
        self._ledger = ledger
        self._windows: dict[int, _Window] = {}
        self._before: list[tuple[Panel, list[tuple[Held, Ref | None, int, int]]]] = []
        self._scaled: bool | None = None

    def before_backward(self, outputs: Any, kind: str) -> None:
        """Remember the gradients and read the tape, before the engine runs."""
        nodes = [node for node in (getattr(output, "grad_fn", None) for output in outputs) if node is not None]
        self._scaled = scaled(nodes) if nodes else None
        if self._scaled is False and kind == "MulBackward0":  # multiplied by the scale by hand, perhaps
            self._scaled = None
        self._before = [
            (panel, [(held, held.grad, held.version, held.state) for held in panel.everything])
            for panel in self._ledger.panels.values()
        ]

    def after_backward(self, site: Site | None, *, seen: bool) -> None:
        """Record the gradients that this backward pass wrote to; after an unseen pass, the answer is unknown."""
        before, self._before = self._before, []
        if not seen:
            self._windows.clear()
        for panel, states in before:
            written = [
                state for held, grad, version, state in states
                if held.grad is not grad or held.version != version or held.state != state
            ]  # fmt: skip
            if not written:
                continue
            added = any(state in (FRESH, MIXED) for state in written)
            window = self._windows.get(panel.number)
            if window is None or not added:
                window = self._windows[panel.number] = _Window(unknown=added)
            if self._scaled is None:
                window.unknown = True
            elif self._scaled:
                window.scaled = site
                if window.unscaled:
                    window.late = site
            elif not window.unscaled:
                window.plain = site
            window.norm = _norm(panel)

    def unscaled(self, panel: Panel, site: Site | None) -> None:
        """Record the user's call of ``unscale_``."""
        window = self._windows.get(panel.number)
        if window is not None:
            window.unscaled, window.unscaled_at, window.scaled = True, site, None

    def stepping(self, panel: Panel, site: Site | None, *, scaler: bool) -> dict[str, Any] | None:
        """Return the fields of `GradientScaleRead` for the coming step; None if too little is known."""
        window = self._windows.pop(panel.number, None)
        if window is None or window.unknown or not any(held.state in (FRESH, MIXED) for held in panel.everything):
            return None
        carried = window.scaled
        if not scaler and carried is not None and (not panel.scaled or window.norm != _norm(panel)):
            return None  # written to in between: unscaled by hand
        return {
            "optimizer": panel.number,
            "site": site,
            "scaler": scaler,
            "scaled": carried,
            "plain": window.plain,
            "late": window.late,
            "unscaled": window.unscaled_at,
        }


def _norm(panel: Panel) -> float | None:
    square = 0.0
    for held in panel.everything[:_MEASURED]:
        parameter = held.ref()
        if parameter is not None and measurable(parameter.grad):
            square += float(here(parameter.grad).float().norm()) ** 2
    return math.sqrt(square) if math.isfinite(square) else None
