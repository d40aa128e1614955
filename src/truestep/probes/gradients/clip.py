"""Gradient clipping. Seams: the functions that ``clip_grad_norm_`` and ``clip_grad_value_`` call in their module."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from truestep.events import GradientsClipped, PartsClipped
from truestep.probes.context.local_variables import argument
from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.gradient_states import FRESH, MIXED, NONE, USED, WRITTEN, ZEROED, Held, looks_zero
from truestep.seams.fsdp import is_flattened
from truestep.seams.patch import patch
from truestep.seams.ranks import group


class ClipProbe(Probe):
    """Emits `GradientsClipped` and `PartsClipped`; clipping is a write in place that does not clear."""

    def install(self, stack: ExitStack) -> None:
        import torch.nn.utils.clip_grad as module

        scene, coast = self.scene, self.scene.coast
        compiling = scene.torch.compiler.is_dynamo_compiling

        def _clip_grads_with_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or not scene.active:
                return original_clip(parameters, max_norm, *args, **kwargs)
            listed = parameters if type(parameters) is list else self.listed(parameters)
            key = _key(listed, max_norm) if coast.on or coast.learning else 0
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
                scene.coast.wake()
                self.by_value(tensors[0], sys._getframe(1))
            return original_group(tensors, *args, **kwargs)

        original_clip = patch(stack, module, "_clip_grads_with_norm_", _clip_grads_with_norm_)
        original_group = patch(stack, module, "_group_tensors_by_device_and_dtype", _group_tensors_by_device_and_dtype)

    def listed(self, parameters: Any) -> list[Any]:
        """Return the parameters to be clipped: a tensor, or an iterable that is read once."""
        return [parameters] if isinstance(parameters, self.scene.torch.Tensor) else list(parameters)

    @sees
    def written(self, parameters: Sequence[Any]) -> None:
        """Record that these gradients were written to in place."""
        self.scene.ledger.written(self.scene.ledger.among(parameters))

    @sees
    def by_value(self, grads: Sequence[Any], frame: Any) -> None:
        """Examine the gradients that are about to be clamped, and find their parameters."""
        wanted = {id(grad) for grad in grads}
        owners: list[tuple[Held, Any]] = []
        for held in self.scene.ledger.by_id.values():
            parameter = held.ref()
            if parameter is not None and parameter.grad is not None and id(parameter.grad) in wanted:
                owners.append((held, parameter))
        limit = argument(frame, "clip_value")
        self.before("value", [parameter for _, parameter in owners], limit, given=len(grads))
        for held, _ in owners:
            held.version = WRITTEN

    @sees
    def before(
        self, kind: str, parameters: Sequence[Any], limit: Any, *, given: int | None = None, key: int = 0
    ) -> None:
        """Examine the gradients right before they are clipped."""
        scene, ledger = self.scene, self.scene.ledger
        states: dict[int, int] = {}
        owners: dict[int, int] = {}
        for held in ledger.among(parameters):
            grad = held.look()
            state = held.state
            if state == ZEROED and grad is not None and (scene.sampling.on or grad.is_cpu) and looks_zero(grad):
                state = NONE
            states[state] = states.get(state, 0) + 1
            if held.panel is not None and held.panel.number:
                owners[held.panel.number] = owners.get(held.panel.number, 0) + 1
        if scene.sampling.on:
            for number in owners:
                ledger.panels[number].unclipped = ledger.ratio(ledger.panels[number])
        owner = max(owners, key=lambda number: owners[number], default=None)
        scene.tell(
            GradientsClipped,
            kind=kind,
            site=scene.site(2),
            given=len(parameters) if given is None else given,
            observed=sum(states.values()),
            max_norm=float(limit) if isinstance(limit, int | float) else math.nan,
            fresh=states.get(FRESH, 0) + states.get(MIXED, 0),
            used=states.get(USED, 0),
            absent_grad=states.get(NONE, 0),
            scaled=any(ledger.panels[number].scaled for number in owners),
            optimizer=owner,
            foreign=0 if states else self._foreign(parameters),
            unclipped=0 if owner is None else self._unclipped(owner, parameters),
            optimizers=tuple(sorted(owners)),
        )
        if kind == "norm" and scene.sampling.on and isinstance(limit, int | float):
            self._parts(parameters, float(limit))
        if scene.coast.learning:
            scene.coast.name(key)

    def _parts(self, parameters: Sequence[Any], limit: float) -> None:
        """Emit the norm of the gradients of parameters that FSDP1 has flattened, if they are all of this kind."""
        if not parameters or group() is None or not all(map(is_flattened, parameters)):
            return
        torch = self.scene.torch
        squares = [
            parameter.grad.detach().double().square().sum() for parameter in parameters if parameter.grad is not None
        ]
        norm = float(torch.stack(squares).sum()) ** 0.5 if squares else 0.0
        self.scene.tell(PartsClipped, norm=norm, max_norm=limit, site=self.scene.site(3))

    def _foreign(self, parameters: Sequence[Any]) -> int:
        """Return the number of parameters outside of optimizers and without gradients; 0 if any other is included."""
        for parameter in parameters:
            held = self.scene.ledger.held(parameter)
            if parameter.grad is not None or (held is not None and held.panel is not None and held.panel.number):
                return 0
        return len(parameters)

    def _unclipped(self, owner: int, parameters: Sequence[Any]) -> int:
        """Return the number of examined gradients of an optimizer that are fresh and are not among the clipped ones."""
        clipped = {id(parameter) for parameter in parameters}
        sentinels = [(held.ref(), held.state) for held in self.scene.ledger.panels[owner].sentinels]
        return sum(p is not None and id(p) not in clipped and state in (FRESH, MIXED) for p, state in sentinels)


def _key(parameters: list[Any], limit: Any) -> int:
    """Return a key that is equal for the same clipping of a later round; 0 without one."""
    if type(limit) not in (int, float) or not parameters:
        return 0
    try:  # the caller of clip_grad_norm_, below its wrapper for no_grad
        return hash((id(parameters[0]), len(parameters), limit, sys._getframe(4).f_lasti))
    except ValueError:
        return 0
