"""The rules by which gradients change state: made by a backward pass, used by a step, mixed, cleared.

Sampled steps examine all parameters, other steps two sentinels per optimizer, and only when their state may have
changed: the loops below run at every step and are written for speed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from truestep.probes.gradients.gradient_states import (
    FRESH,
    HAND,
    MIXED,
    NONE,
    USED,
    WRITTEN,
    ZEROED,
    Counts,
    Held,
    Panel,
    few_values,
    here,
    looks_zero,
    measurable,
    one_value,
    version,
)
from truestep.seams.fsdp import is_whole
from truestep.seams.refs import Ref, is_referenced

if TYPE_CHECKING:
    from truestep.events import Site
    from truestep.probes.context.sampling import Sampling

_CHECKS = 5
_MEASURED = 8
_DESCENT = 0.3
"""Least cosine between a move and the descent of the gradients: moves of other kinds stay below 0.1."""


class Ledger:
    """All panels, and the rules by which gradients change state."""

    def __init__(self, tensor: Any, sampling: Sampling) -> None:
        self._tensor = tensor
        self._sampling = sampling
        self.lock = threading.RLock()
        """Held while gradients are examined."""
        self.thread = 0
        """The thread that runs the backward passes."""
        self.by_id: dict[int, Held] = {}
        self.panels: dict[int, Panel] = {}
        self.free = Panel(0)
        """Parameters that a loss reaches outside of optimizers: updated by hand, or not at all."""
        self.attempts: dict[int, int] = {}
        """Number of steps, also of those that a scaler skipped, by optimizer number."""
        self.forwarded: dict[int, tuple[Site, ...]] = {}
        """Places of the calls since the last step by trainable parameter of the modules (sampled steps only)."""
        self.without_grad: dict[int, tuple[Site, ...]] = {}
        """The same for modules that ran while gradients were off, inside of a call with gradients."""
        self.ran: dict[int, int] = {}
        """Parameters of modules that ran inside of a call with gradients, with the step of the latest such call that
        was read."""
        self.ran_without_grad: set[int] = set()
        """Those of modules that ran while gradients were off inside of it."""
        self.live: list[Held] = []
        """The parameters that are currently examined."""
        self._before: list[tuple[Held, Any]] = []
        self._swapped: Held | None = None
        """The parameter that was swapped last: torch swaps its gradient next."""

    def held(self, parameter: Any) -> Held | None:
        """Return the record of a parameter; None for an unknown one."""
        held = self.by_id.get(id(parameter))
        return held if held is not None and held.ref() is parameter else None

    def begin_step(self) -> None:
        """Begin a step that is sampled, or that follows a sampled one."""
        self.forwarded.clear()
        self.without_grad.clear()
        self.refresh()

    def refresh(self) -> None:
        """Choose the parameters to examine: all of them in a sampled step."""
        live: dict[int, Held] = {}
        for panel in (*self.panels.values(), self.free):
            for held in self.owned(panel):
                live[held.number] = held
        self.live = [held for held in live.values() if held.ref() is not None]

    def prune(self) -> None:
        """Forget parameters and optimizers that were freed."""
        self.by_id = {key: held for key, held in self.by_id.items() if held.ref() is not None}
        for panel in list(self.panels.values()):
            if panel.everything and all(held.ref() is None for held in panel.everything):
                del self.panels[panel.number]

    def outlived(self) -> bool:
        """Return True, and forget the free parameters, if all of them are gone: a later part of the run has others."""
        free = self.free.everything
        if not free or any(held.ref() is not None for held in free):
            return False
        self.free = Panel(0)
        self.prune()
        self.refresh()
        return True

    def owned(self, panel: Panel) -> list[Held]:
        """Return the parameters of one optimizer that are currently examined."""
        return panel.everything if self._sampling.on else panel.sentinels

    def among(self, parameters: Iterable[Any]) -> list[Held]:
        """Return the given parameters that are currently examined."""
        wanted = {id(parameter) for parameter in parameters}
        return [held for held in self.live if id(held.ref()) in wanted]

    # --- backward ----------------------------------------------------------------------------------------------

    def before_backward(self) -> int:
        """Examine the gradients before the engine runs; return the number of parameters changed by hand."""
        moved = 0
        if self._before:  # of a backward that raised
            self._before.clear()
        for held in self.live:
            parameter = held.ref()
            if parameter is None:
                continue
            if parameter.grad is None:
                state = held.state
                if state == FRESH or state == MIXED:
                    held.cleared = True
                held.state, held.used_memory = NONE, 0
                panel = held.panel
                if panel is not None and not panel.stepped and held.moved >= 0:
                    moved += self._moved(held, parameter)
                continue
            grad = held.look()
            panel = held.panel
            if panel is None:
                continue
            if not panel.stepped and held.moved >= 0 and held.state in (FRESH, MIXED, ZEROED):
                if self._moved(held, parameter):
                    moved += 1
                    if held.state == FRESH:
                        held.state, held.used_memory = USED, held.memory
            if held.state == USED and self._zeroed_unseen(panel, grad):
                held.state, held.used_memory = ZEROED, 0
            if self._sampling.on and len(self._before) < _MEASURED and measurable(grad):
                self._before.append((held, here(grad).clone()))
        return moved

    def _moved(self, held: Held, parameter: Any) -> bool:
        """Return True if a never-stepped parameter changed since the latest backward pass, even through ``.data``."""
        now, spot = version(parameter), one_value(parameter)
        moved = (now, spot) != (held.moved, held.spot)
        held.moved, held.spot = now, spot
        return moved

    def _zeroed_unseen(self, panel: Panel, grad: Any) -> bool:
        """Return True if a used gradient was zeroed without a trace (``.grad.data.zero_()``, NumPy)."""
        if panel.checks < _CHECKS or (self._sampling.on and panel.checks < 100 * _CHECKS):
            panel.checks += 1
            panel.zeroes_unseen = looks_zero(grad)
        return panel.zeroes_unseen

    def mixed_by_hand(self) -> int:
        """Count and resolve mixed gradients of parameters that were changed by hand, if they moved against them.

        Other writes are no steps: a target network is overwritten while a loss without detach leaves gradients in it.
        """
        mixed, along, moves, slopes = 0, 0.0, 0.0, 0.0
        for held in self.live:
            if held.panel is not None and not held.panel.stepped and held.state == MIXED and held.moved >= 0:
                mixed += 1
                held.state = USED
                values = few_values(held.ref()) if held.descent is not None else None
                if held.descent is not None and values is not None:
                    before, slope = held.descent
                    move = values - before
                    along += float(move @ slope)
                    moves += float(move @ move)
                    slopes += float(slope @ slope)
        return mixed if along < -_DESCENT * math.sqrt(moves * slopes) else 0

    def after_backward(self) -> tuple[int, int, int, int]:
        """Examine the gradients after the engine ran.

        Returns:
            The numbers of parameters that were examined, that received a gradient, and that had it added to a used one
            and to a fresh one.
        """
        written = onto_used = onto_fresh = 0
        plain = self._tensor
        for held in self.live:
            parameter = held.ref()
            grad = None if parameter is None else parameter.grad
            if grad is None:
                if held.flattened:  # no part of it is in this rank's shard
                    held.state = NONE
                continue
            now = grad._version if type(grad) is plain else version(grad)
            if held.state == NONE:
                held.state = FRESH
                held.grad, held.version = Ref(grad), now
            else:
                known = held.grad() if held.grad is not None else None
                if known is grad and now == held.version and not (held.flattened and is_whole(parameter, grad)):
                    continue
                if held.state in (HAND, ZEROED) or (known is not grad and not held.adds(grad)):
                    held.state = FRESH
                elif held.state == USED or held.state == MIXED:
                    held.state = MIXED
                    onto_used += 1
                else:
                    onto_fresh += 1
                held.grad, held.version = Ref(grad), now
            written += 1
            held.cleared = False
            if held.flattened:
                held.memory = grad.data_ptr()
            if held.panel is not None and not held.panel.stepped:
                held.moved, held.spot = version(parameter), one_value(parameter)
                held.descent = None
                if held.state == MIXED:
                    values, slope = few_values(parameter), few_values(grad)
                    held.descent = None if values is None or slope is None else (values, slope)
        if self._sampling.on:
            self._share()
        return len(self.live), written, onto_used, onto_fresh

    def _share(self) -> None:
        """Record the norm of the gradient that this backward pass added, at a sampled step."""
        before = {id(held): tensor for held, tensor in self._before}
        for panel in self.panels.values():
            square = 0.0
            for held in panel.everything[:_MEASURED]:
                parameter = held.ref()
                if parameter is None or held.state not in (FRESH, MIXED) or not measurable(parameter.grad):
                    continue
                grad = here(parameter.grad)
                earlier = before.get(id(held))
                if earlier is not None and earlier.shape != grad.shape:  # FSDP1: whole gradients, then those of shards
                    panel.shares.clear()
                    square = 0.0
                    break
                square += float((grad if earlier is None else grad - earlier).float().norm()) ** 2
            if square:
                panel.shares.append(math.sqrt(square))
        self._before.clear()

    def ratio(self, panel: Panel) -> float | None:
        """Return the gradient norm at the step over the mean norm per backward pass; None if not measured."""
        if not panel.shares or panel.unclipped is not None:
            return panel.unclipped
        square = 0.0
        for held in panel.everything[:_MEASURED]:
            parameter = held.ref()
            if parameter is not None and measurable(parameter.grad):
                square += float(here(parameter.grad).float().norm()) ** 2
        mean = sum(panel.shares) / len(panel.shares)
        return math.sqrt(square) / mean if mean > 0 and math.isfinite(mean) and math.isfinite(square) else None

    # --- step, clearing, writes in place ---------------------------------------------------------------------------

    def fresh_only(self, panel: Panel) -> int:
        """Return the number of examined gradients if all are fresh, else 0: the ordinary case, without a read."""
        if self._sampling.on:
            return 0
        for held in panel.sentinels:
            if held.state != FRESH or held.version == WRITTEN:
                return 0
        return len(panel.sentinels)

    def look(self, some: Iterable[Held]) -> Counts:
        """Update and count the states of some gradients."""
        counts = Counts()
        for held in some:
            if held.ref() is not None:
                held.look()
                counts.add(held)
        return counts

    def stepped(self, panel: Panel) -> None:
        """Count a step of an optimizer, and mark its gradients as used."""
        self._use(panel.number, panel, next_sampled=self._sampling.is_sampled(self._sampling.step + 1))

    def skipped(self, optimizer: int) -> None:
        """Count a step that a GradScaler skipped, and mark the gradients as used."""
        self._use(optimizer, self.panels.get(optimizer), next_sampled=self._sampling.on)

    def _use(self, optimizer: int, panel: Panel | None, *, next_sampled: bool) -> None:
        self.attempts[optimizer] = self.attempts.get(optimizer, 0) + 1
        if panel is None:
            return
        for held in panel.others:  # they moved by this step: not by hand
            held.moved = -1
        if next_sampled:
            panel.rotate()
        elif not self._sampling.on and not panel.bumps:
            for held in panel.sentinels:
                held.cleared = False
                held.state = NONE if held.state == NONE else USED
                held.used_memory = held.memory
            return
        bumps = False
        for held in panel.everything if next_sampled or self._sampling.on else panel.sentinels:
            parameter = held.ref()
            if parameter is not None:
                held.missed += self._sampling.on and held.state == NONE
                before, known = held.version, held.grad
                held.sync(parameter.grad, USED)
                bumps = bumps or (known is not None and held.grad is not None and held.version != before)
                held.cleared = False
        panel.bumps = bumps
        panel.stepped = True
        panel.shares.clear()
        panel.unclipped = None

    def cleared(self, some: Iterable[Held]) -> None:
        """Record that these gradients were cleared by zero_grad()."""
        for held in some:
            if held.state == FRESH or held.state == MIXED:
                held.cleared = True
            held.state, held.used_memory = ZEROED, 0
            if self._sampling.on and held.panel is not None:
                held.panel.shares.clear()

    def written(self, some: Iterable[Held]) -> None:
        """Record a write in place that a probe observed and that does not clear (clipping, unscaling)."""
        for held in some:
            parameter = held.ref()
            grad = None if parameter is None else parameter.grad
            if grad is not None and held.grad is not None and held.grad() is grad:
                held.version = version(grad)

    def swapped(self, first: Any, second: Any) -> None:
        """Follow two tensors that exchanged their contents, and with them gradients and version counters.

        The new content counts as the same values in another form: a converted parameter did not change, and a converted
        gradient keeps its state, fresh or used.
        """
        one, two = self.held(first), self.held(second)
        counts = version(first), version(second)
        if one is not None and two is not None:
            one.exchange(two)
        for held, thing, now, before in ((one, first, *counts), (two, second, *reversed(counts))):
            if held is not None:
                held.recount(before, now)
                self._swapped = held
                continue
            owner = self._owner(thing)
            if owner is not None and owner.version == before:
                owner.version = now

    def _owner(self, grad: Any) -> Held | None:
        """Return the parameter of a gradient; None for any other tensor."""
        if not is_referenced(grad):
            return None
        last = [] if self._swapped is None else [self._swapped]
        some = (*last, *self.by_id.values())
        return next((held for held in some if held.grad is not None and held.grad() is grad), None)

    def forget(self) -> None:
        """Forget every parameter: observation has ended."""
        for held in self.by_id.values():
            held.panel = None  # which has it: a cycle
        self.by_id, self.panels, self.free, self.live = {}, {}, Panel(0), []
        self._before, self._swapped = [], None
