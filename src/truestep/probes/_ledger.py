"""The state of every gradient looked at: made by which backward, used by a step, mixed, cleared.

Judged by the gradient itself: the tensor (by weak reference) and its version counter. All parameters are looked at in
sampled steps, a few sentinels per optimizer otherwise. Nothing here holds a tensor alive between two calls.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

NONE, FRESH, USED, MIXED, HAND, ZEROED = range(6)
"""No gradient; made by a backward; used by a step; a backward added to a used one; set by the user; zeroed in place."""

SENTINELS = 4
_CHECKS = 5
_PROBED_ELEMENTS = 64
_MEASURED = 8


def version(tensor: Any) -> int:
    """Return the version counter of a tensor, -1 where it keeps none, also below a DTensor."""
    try:
        local = getattr(tensor, "_local_tensor", None)
        return int(tensor._version if local is None else tensor._version * 1_000_003 + local._version)
    except RuntimeError:
        return -1


def looks_zero(tensor: Any) -> bool:
    """Whether a gradient holds only zeros: a few elements first, all of them when those are zero."""
    tensor = getattr(tensor, "_local_tensor", tensor).detach()
    if tensor.is_sparse or tensor.layout is not _strided(tensor):
        return False
    flat = tensor.reshape(-1)
    stride = max(1, flat.numel() // _PROBED_ELEMENTS)
    return not bool(flat[::stride].any()) and not bool(flat.any())


def _strided(tensor: Any) -> Any:
    import torch

    return torch.strided


class Held:
    """What is remembered of one parameter."""

    __slots__ = ("base", "base_version", "cleared", "grad", "moved", "number", "ref", "state", "version")

    def __init__(self, number: int, parameter: Any) -> None:
        self.number = number
        self.ref = weakref.ref(parameter)
        self.grad: weakref.ref[Any] | None = None
        self.version = -1
        self.state = NONE
        self.cleared = False
        self.moved = -1
        self.base: list[str] | None = None
        self.base_version = -1

    def sync(self, grad: Any, state: int) -> None:
        """Remember the gradient as it is now, with its state."""
        if grad is None:
            self.grad, self.state = None, NONE
            return
        self.grad, self.version, self.state = weakref.ref(grad), version(grad), state

    def look(self, grad: Any) -> None:
        """Take up what the user did to the gradient since the last look."""
        if grad is None:
            if self.state in (FRESH, MIXED):
                self.cleared = True
            self.grad, self.state = None, NONE
            return
        known = self.grad() if self.grad is not None else None
        if known is grad:
            now = version(grad)
            if now != self.version:
                self.version = now
                if self.state == USED:
                    self.state = ZEROED
        else:
            self.sync(grad, HAND)


class Panel:
    """The parameters of one optimizer, and which of them are looked at in ordinary steps."""

    __slots__ = ("_at", "checks", "everything", "number", "scaled", "sentinels", "shares", "stepped", "zeroes_unseen")

    def __init__(self, number: int) -> None:
        self.number = number
        self.everything: list[Held] = []
        self.sentinels: list[Held] = []
        self._at = 0
        self.stepped = False
        self.scaled = False
        self.checks = 0
        self.zeroes_unseen = False
        self.shares: list[float] = []

    def add(self, held: Held) -> None:
        self.everything.append(held)
        self.rotate()

    def rotate(self) -> None:
        """Choose the sentinels: the first and the last parameter, and others in turn."""
        every = self.everything
        if len(every) <= SENTINELS:
            self.sentinels = list(every)
            return
        middle = every[1:-1]
        chosen = [middle[(self._at + i) % len(middle)] for i in range(SENTINELS - 2)]
        self._at += SENTINELS - 2
        self.sentinels = [every[0], *chosen, every[-1]]


class Counts:
    """How many gradients were in which state."""

    __slots__ = ("absent", "by_hand", "cleared", "fresh", "mixed", "observed", "reused")

    def __init__(self) -> None:
        self.observed = self.fresh = self.mixed = self.reused = self.cleared = self.absent = self.by_hand = 0

    def add(self, held: Held) -> None:
        self.observed += 1
        state = held.state
        if state == FRESH:
            self.fresh += 1
        elif state == MIXED:
            self.mixed += 1
        elif state == USED:
            self.reused += 1
        elif state == HAND:
            self.by_hand += 1
        elif held.cleared:
            self.cleared += 1
        elif state == NONE:
            self.absent += 1
        else:
            self.by_hand += 1


class Ledger:
    """All panels, and the rules by which gradients change state."""

    def __init__(self) -> None:
        self.by_id: dict[int, Held] = {}
        self.panels: dict[int, Panel] = {}
        self.free = Panel(0)
        """Parameters that a loss reaches and no optimizer holds: updated by hand, or not at all."""
        self.sampled = True
        self._before: list[tuple[Held, Any]] = []

    def held(self, parameter: Any) -> Held | None:
        """Return what is remembered of a parameter, None for an unknown one."""
        held = self.by_id.get(id(parameter))
        return held if held is not None and held.ref() is parameter else None

    def watched(self) -> Iterator[tuple[Panel, Held]]:
        """Go through the parameters that are looked at now."""
        for panel in (*self.panels.values(), self.free):
            for held in panel.everything if self.sampled else panel.sentinels:
                yield panel, held

    # --- backward ----------------------------------------------------------------------------------------------

    def before_backward(self, *, measure: bool) -> int:
        """Look at the gradients before the engine runs; return how many parameters moved by hand."""
        moved = 0
        self._before.clear()
        for panel, held in self.watched():
            parameter = held.ref()
            if parameter is None:
                continue
            grad = parameter.grad
            held.look(grad)
            if not panel.stepped and held.moved >= 0:
                now = version(parameter)
                if now != held.moved and held.state in (FRESH, MIXED):
                    moved += 1
                    held.moved = now
                    held.state = held.state if held.state == MIXED else USED
            if held.state == USED and self._zeroed_unseen(panel, grad):
                held.state = ZEROED
            if measure and grad is not None and len(self._before) < _MEASURED and not grad.is_sparse:
                self._before.append((held, grad.detach().clone()))
        return moved

    def _zeroed_unseen(self, panel: Panel, grad: Any) -> bool:
        """Whether a used gradient was zeroed in a way that leaves no trace (``.grad.data.zero_()``, numpy)."""
        if panel.checks < _CHECKS or (self.sampled and panel.checks < 100 * _CHECKS):
            panel.checks += 1
            panel.zeroes_unseen = looks_zero(grad)
        return panel.zeroes_unseen

    def mixed_by_hand(self) -> int:
        """Count and settle mixed gradients of parameters that moved by hand."""
        mixed = 0
        for panel, held in self.watched():
            if not panel.stepped and held.state == MIXED and held.moved >= 0:
                mixed += 1
                held.state = USED
        return mixed

    def after_backward(self) -> tuple[int, int, int, int]:
        """Look at the gradients after the engine ran.

        Returns:
            how many parameters were looked at, received a gradient, had it added to a used one, to a fresh one.
        """
        observed = written = onto_used = onto_fresh = 0
        for panel, held in self.watched():
            parameter = held.ref()
            if parameter is None:
                continue
            observed += 1
            grad = parameter.grad
            if grad is None:
                continue
            known = held.grad() if held.grad is not None else None
            now = version(grad)
            if known is grad and now == held.version:
                continue
            written += 1
            if known is not grad or held.state in (NONE, HAND, ZEROED):
                held.state = FRESH
            elif held.state == USED or held.state == MIXED:
                held.state = MIXED
                onto_used += 1
            else:
                onto_fresh += 1
            held.cleared = False
            held.grad, held.version = weakref.ref(grad), now
            if not panel.stepped:
                held.moved = version(parameter)
        self._share()
        return observed, written, onto_used, onto_fresh

    def _share(self) -> None:
        """Keep the norm of what this backward added (only when it was measured)."""
        if not self._before and not self.sampled:
            return
        squares: dict[int, float] = {}
        before = {id(held): tensor for held, tensor in self._before}
        for panel in self.panels.values():
            for held in panel.everything[:_MEASURED]:
                parameter = held.ref()
                if parameter is None or parameter.grad is None or parameter.grad.is_sparse or held.state not in (FRESH, MIXED):
                    continue
                grad = parameter.grad.detach()
                added = grad - before[id(held)] if id(held) in before else grad
                squares[panel.number] = squares.get(panel.number, 0.0) + float(added.float().norm()) ** 2
        for number, square in squares.items():
            self.panels[number].shares.append(math.sqrt(square))
        self._before.clear()

    def ratio(self, panel: Panel) -> float | None:
        """Return the norm about to be stepped on over the mean norm of one backward's share, where measured."""
        if not panel.shares:
            return None
        square = 0.0
        for held in panel.everything[:_MEASURED]:
            parameter = held.ref()
            if parameter is not None and parameter.grad is not None and not parameter.grad.is_sparse:
                square += float(parameter.grad.detach().float().norm()) ** 2
        mean = sum(panel.shares) / len(panel.shares)
        return math.sqrt(square) / mean if mean > 0 and math.isfinite(mean) and math.isfinite(square) else None

    # --- step, clearing, writes in place ---------------------------------------------------------------------------

    def before_step(self, panel: Panel) -> Counts:
        """Look at an optimizer's gradients right before it steps."""
        counts = Counts()
        for held in panel.everything if self.sampled else panel.sentinels:
            parameter = held.ref()
            if parameter is None:
                continue
            held.look(parameter.grad)
            counts.add(held)
        return counts

    def after_step(self, panel: Panel, *, next_sampled: bool) -> None:
        """Mark an optimizer's gradients as used."""
        if next_sampled:
            panel.rotate()
        for held in panel.everything if next_sampled else panel.sentinels:
            parameter = held.ref()
            if parameter is not None:
                held.sync(parameter.grad, USED)
                held.cleared = False
        panel.stepped = True
        panel.shares.clear()

    def owned(self, panel: Panel) -> list[Held]:
        """Return the parameters of one optimizer that are looked at now."""
        return panel.everything if self.sampled else panel.sentinels

    def among(self, parameters: Iterable[Any]) -> list[Held]:
        """Return those of some parameters that are looked at now."""
        wanted = {id(parameter) for parameter in parameters}
        return [held for _, held in self.watched() if id(held.ref()) in wanted]

    def look(self, some: Iterable[Held]) -> Counts:
        """Take up and count the states of some gradients."""
        counts = Counts()
        for held in some:
            parameter = held.ref()
            held.look(None if parameter is None else parameter.grad)
            counts.add(held)
        return counts

    def cleared(self, some: Iterable[Held]) -> None:
        """Take up that these gradients were cleared by zero_grad()."""
        for held in some:
            parameter = held.ref()
            if held.state in (FRESH, MIXED):
                held.cleared = True
            held.sync(None if parameter is None else parameter.grad, ZEROED)

    def written(self, some: Iterable[Held]) -> None:
        """Take up a write in place that a probe saw and that does not clear (a clip, an unscale)."""
        for held in some:
            parameter = held.ref()
            grad = None if parameter is None else parameter.grad
            if grad is not None and held.grad is not None and held.grad() is grad:
                held.version = version(grad)

    def skipped(self, panel: Panel) -> None:
        """Mark an optimizer's gradients as used by an attempt that a GradScaler skipped."""
        self.after_step(panel, next_sampled=self.sampled)
