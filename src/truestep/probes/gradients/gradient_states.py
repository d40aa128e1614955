"""Records of a gradient, of an optimizer's gradients, and counts of gradients by state.

A state is judged by the gradient itself: the tensor (by weak reference) and its version counter. No tensor is kept
alive between two calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from truestep.probes.context.values import has_values
from truestep.seams.divided import is_divided, part
from truestep.seams.fsdp import is_flattened
from truestep.seams.refs import Ref

NONE, FRESH, USED, MIXED, HAND, ZEROED = range(6)
"""No gradient; made by a backward; used by a step; a backward added to a used one; set by the user; cleared."""

SENTINELS = 2
WRITTEN = -2
"""Version of a gradient that torch is about to write to in place (clipping by value): read again at the next look."""
_PROBED_ELEMENTS = 64
_LARGEST = 1 << 22
_WITH_CONTENT = ("cleared", "descent", "grad", "memory", "moved", "spot", "state", "used_memory", "version")
"""Attributes that move along when two parameters exchange contents, as gradients and version counters do."""


def version(tensor: Any) -> int:
    """Return the version counter of a tensor, also of the one in a DTensor; -1 without a counter."""
    try:
        mine = part(tensor)
        return int(tensor._version if mine is tensor else tensor._version * 1_000_003 + mine._version)
    except RuntimeError:
        return -1


def here(tensor: Any) -> Any:
    """Return a gradient as real numbers; for a DTensor, the part on this rank (a norm would be a collective)."""
    tensor = part(tensor).detach()
    return as_real(tensor) if tensor.is_complex() else tensor


def as_real(tensor: Any) -> Any:
    """Return complex numbers as pairs of real ones: (...) as (..., 2)."""
    import torch

    return torch.view_as_real(tensor.resolve_conj())


def one_value(parameter: Any) -> float | None:
    """Return one value of a parameter if that is cheap: it shows writes that bypass the version counter."""
    if not parameter.is_cpu or is_divided(parameter) or not has_values(parameter):
        return None
    value = float(here(parameter).reshape(-1)[-1]) if parameter.numel() else math.nan
    return None if math.isnan(value) else value


def few_values(tensor: Any) -> Any:
    """Return a copy of evenly spaced values of a tensor; None without values, or where a read waits for a device."""
    if not tensor.is_cpu or not has_values(tensor) or not tensor.numel():
        return None
    flat = here(tensor).reshape(-1)
    return flat[:: max(1, flat.numel() // _PROBED_ELEMENTS)].float().clone()


def looks_zero(tensor: Any) -> bool:
    """Return True if a gradient holds only zeros: checks a few elements first, and all if those are zero."""
    if not has_values(tensor):
        return False
    flat = here(tensor).reshape(-1)
    stride = max(1, flat.numel() // _PROBED_ELEMENTS)
    return not bool(flat[::stride].any()) and not bool(flat.any())


def measurable(tensor: Any) -> bool:
    """Return True if a gradient is small enough to be copied and measured at a sampled step."""
    return tensor is not None and has_values(tensor) and tensor.numel() <= _LARGEST


class Held:
    """The record of one parameter."""

    __slots__ = (
        "base",
        "base_step",
        "base_version",
        "cleared",
        "descent",
        "flattened",
        "grad",
        "memory",
        "missed",
        "moved",
        "name",
        "number",
        "panel",
        "ref",
        "spot",
        "state",
        "used_memory",
        "version",
    )

    def __init__(self, number: int, parameter: Any) -> None:
        self.number = number
        self.name = f"parameter {number}"
        """Latest name in an event."""
        self.ref = Ref(parameter)
        self.flattened = is_flattened(parameter)
        self.grad: Ref | None = None
        self.memory = 0
        """Address of the gradient of a flattened parameter. FSDP1 creates new tensors over the same memory."""
        self.used_memory = 0
        """Address of the used gradient of a flattened parameter; 0 once it is cleared."""
        self.version = -1
        self.missed = 0
        """Number of sampled steps without a gradient of it."""
        self.state = NONE
        self.cleared = False
        self.moved = -1
        self.spot: float | None = None
        """One value of the parameter after the latest backward pass."""
        self.descent: tuple[Any, Any] | None = None
        """A few values of the parameter and of its gradient after a backward pass that added to a used gradient."""
        self.base: list[str] | None = None
        self.base_version = -1
        self.base_step = 0
        """Number of the step at which its values were first read."""
        self.panel: Panel | None = None

    def sync(self, grad: Any, state: int) -> None:
        """Record the current gradient with its state."""
        if grad is None:
            self.grad, self.state = None, NONE
        else:
            self.grad, self.version, self.state = Ref(grad), version(grad), state
        if self.flattened:
            self.memory = 0 if grad is None else grad.data_ptr()
            self.used_memory = self.memory if state == USED else 0

    def look(self) -> Any:
        """Record changes of the gradient by the user since the last look, and return the gradient."""
        parameter = self.ref()
        grad = None if parameter is None else parameter.grad
        state = self.state
        if grad is None:
            if state == FRESH or state == MIXED:
                self.cleared = True
            self.grad, self.state, self.used_memory = None, NONE, 0
            return None
        known = self.grad() if self.grad is not None else None
        if known is grad or (self.flattened and state != NONE and grad.data_ptr() == self.memory):
            now = version(grad)
            if known is not grad:
                self.grad = Ref(grad)
            if now != self.version:
                if state == USED and self.version != WRITTEN:
                    self.state, self.used_memory = ZEROED, 0
                elif state == FRESH and self.version != WRITTEN and self.panel is not None:
                    self.panel.scaled = False
                self.version = now
        else:
            self.flattened = self.flattened or is_flattened(parameter)
            self.sync(grad, HAND)
        return grad

    def exchange(self, other: Held) -> None:
        """Follow two parameters that exchanged their contents."""
        for name in _WITH_CONTENT:
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, theirs)
            setattr(other, name, mine)

    def recount(self, before: int, now: int) -> None:
        """Follow a version counter that was replaced by another one, while the values stayed the same."""
        if before < 0:
            return
        self.moved = now if self.moved == before else self.moved
        self.base_version = now if self.base_version == before else self.base_version

    def adds(self, grad: Any) -> bool:
        """Return True if a backward pass added the earlier gradient and its own into this new tensor."""
        if not self.flattened:  # with create_graph, torch writes the sum to a new tensor
            return grad.grad_fn is not None and grad.grad_fn.name() == "AddBackward0"
        again = grad.data_ptr() == self.used_memory
        if again and self.state == FRESH:  # the used gradient was set aside while the ranks did not exchange
            self.state = USED
        return again or self.state == FRESH


class Panel:
    """The parameters of one optimizer, and those of them that are examined in ordinary steps."""

    __slots__ = (
        "_at",
        "bumps",
        "checks",
        "everything",
        "number",
        "optimizer",
        "others",
        "scaled",
        "sentinels",
        "shares",
        "stepped",
        "unclipped",
        "zeroes_unseen",
    )

    def __init__(self, number: int, optimizer: Callable[[], Any] = lambda: None) -> None:
        self.number = number
        self.optimizer = optimizer
        """Weak reference to the optimizer; returns None for parameters outside of optimizers."""
        self.everything: list[Held] = []
        self.sentinels: list[Held] = []
        self.others: list[Held] = []
        """Those that an earlier optimizer holds too (SAM and the optimizer within it)."""
        self._at = 0
        self.stepped = False
        self.scaled = False
        self.bumps = True
        """True if its step writes to the gradients in place, so that they must be read again after it."""
        self.checks = 0
        self.zeroes_unseen = False
        self.shares: list[float] = []
        """At a sampled step: the norms of the gradients that each backward pass of the window added."""
        self.unclipped: float | None = None
        """At a sampled step: the ratio that `Ledger.ratio` gave before a clip."""

    def add(self, held: Held) -> None:
        self.everything.append(held)
        if held.panel is None or held.panel.number == 0:
            held.panel = self
        elif held.panel is not self:
            self.others.append(held)
        self.sentinels = self.everything[-SENTINELS:]

    def rotate(self) -> None:
        """Choose the sentinels: the last of the parameters that have a gradient most often, and the others in turn.

        A step counts as one without gradients if the examined ones have none.
        """
        least = min((held.missed for held in self.everything), default=0)
        every = [held for held in self.everything if held.missed == least]
        if len(every) > SENTINELS:
            self._at = (self._at + 1) % (len(every) - 1)
            every = [every[self._at], every[-1]]
        self.sentinels = every


class Counts:
    """Numbers of gradients by state."""

    __slots__ = ("absent", "by_hand", "cleared", "fresh", "mixed", "observed", "reused")

    def __init__(self) -> None:
        self.observed = self.fresh = self.mixed = self.reused = self.cleared = self.absent = self.by_hand = 0

    def key(self) -> tuple[int, ...]:
        return self.observed, self.fresh, self.mixed, self.reused, self.cleared, self.absent, self.by_hand

    def fields(self) -> dict[str, int]:
        """Return the counts as fields of `OptimizerStepped`."""
        return {
            "observed": self.observed,
            "fresh": self.fresh,
            "mixed": self.mixed,
            "reused": self.reused,
            "cleared": self.cleared,
            "absent_grad": self.absent,
            "by_hand": self.by_hand,
        }

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
