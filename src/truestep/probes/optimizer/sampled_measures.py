"""Measures of sampled steps: the mixture of gradients, and the parameters that never change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truestep.events import Event, MixtureMeasured, ParametersUnchanged, Site, WindowMeasured
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values, stored
from truestep.probes.gradients.gradient_states import FRESH, Counts, Held, Panel, looks_zero, version
from truestep.probes.gradients.random_values import is_drawn, is_initial
from truestep.seams.divided import part
from truestep.seams.fsdp import is_freed

_ELEMENTS = 16
_LEAST_LOOKS = 4
"""Looks at a gradient of zeros before it is reported."""
_ROUNDING = 1e-4
_MOST = 4000
_SETTLED = 1000
"""Steps after which unchanged parameters are reported again only if their set differs."""


def mixture(scene: Scene, panel: Panel, counts: Counts, site: Site | None) -> None:
    """Emit the ratio of the gradient at the step to the gradient of a single backward pass."""
    backwards = len(panel.shares)
    if not counts.mixed and backwards < 2:
        return
    ratio = scene.ledger.ratio(panel)
    if ratio is None:
        return
    ratio = float(f"{ratio:.3g}")
    event: Event = (
        MixtureMeasured(optimizer=panel.number, ratio=ratio, site=site)
        if counts.mixed
        else WindowMeasured(optimizer=panel.number, ratio=ratio, backwards=backwards, site=site)
    )
    scene.emit(event)


def finite_gradients(scene: Scene, panel: Panel) -> bool:
    """Return True if an optimizer has gradients and all of them are finite."""
    found = False
    for held in panel.everything:
        parameter = held.ref()
        grad = None if parameter is None else parameter.grad
        if grad is None or not has_values(grad):
            continue
        found = True
        if not bool(scene.torch.isfinite(part(grad).detach()).all()):
            return False
    return found


class Unchanged:
    """Finds the trainable parameters that have kept their values since they were first examined.

    It compares version counters, and on the CPU also some elements, which shows writes that bypass the counter.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._latest: tuple[tuple[int, ...], ...] = ()
        """The parameters in the latest event."""
        self._random: dict[int, bool] = {}
        self._drawn: dict[int, bool] = {}
        self._zero: dict[int, int] = {}
        """Parameters of optimizers with gradients of zeros so far, with the number of looks."""
        self._sloped: set[int] = set()
        """Parameters of optimizers that had another gradient."""
        self.moved: set[int] = set()
        """Parameters with other values than at first, of those alive."""
        self.stayed: dict[int, int] = {}
        """The others, with the number of steps since their values were first read."""

    def look(self) -> None:
        """Emit these parameters."""
        scene = self._scene
        still: list[int] = []
        moved: list[int] = []
        frozen: list[int] = []
        self.stayed.clear()
        for held in list(scene.ledger.by_id.values()):
            parameter = held.ref()
            if parameter is None or is_lazy(parameter):
                continue
            if held.base is None:
                first_values(held, parameter, scene.sampling.step)
            elif held.base_version != version(parameter) or held.base != fingerprint(parameter):
                moved.append(held.number)
            else:
                self._examine(held, parameter)
                self.stayed[held.number] = scene.sampling.step - held.base_step
                if parameter.requires_grad:
                    still.append(held.number)
            if not parameter.requires_grad:
                frozen.append(held.number)
            elif held.panel is not None and held.panel.number and held.number not in self._sloped:
                self._weigh(held, parameter)
        self.moved = set(moved)
        random, drawn = (tuple(one for one, is_so in found.items() if is_so) for found in (self._random, self._drawn))
        step = scene.sampling.step
        zero = [number for number, looks in self._zero.items() if looks >= _LEAST_LOOKS]
        found = *(tuple(numbers[:_MOST]) for numbers in (still, moved, frozen, zero)), random, drawn
        if step < 3 or (step > _SETTLED and found == self._latest):
            return
        self._latest = found
        names = ("parameters", "moved", "frozen", "zero", "random", "drawn")
        scene.emit(ParametersUnchanged(**dict(zip(names, found, strict=True)), steps=step))

    def last(self) -> Iterator[ParametersUnchanged]:
        """Yield the parameters again if some with gradients of zeros have moved since, as at a late first reward."""
        if not self._latest or not self._latest[3]:
            return
        numbers, moved = set(self._latest[3]), set()
        for held in list(self._scene.ledger.by_id.values()):
            parameter = held.ref() if held.number in numbers else None
            if parameter is not None and held.base and not _are_scaled(held.base, fingerprint(parameter)):
                moved.add(held.number)
        if moved:
            still, before, frozen, zero, random, drawn = self._latest
            yield ParametersUnchanged(
                parameters=tuple(number for number in still if number not in moved),
                steps=self._scene.sampling.step,
                moved=(*before, *sorted(moved.difference(before))),
                frozen=frozen,
                random=random,
                drawn=drawn,
                zero=tuple(number for number in zero if number not in moved),
            )

    def _weigh(self, held: Held, parameter: Any) -> None:
        """Record whether the gradient is zero in every element, as it was before; weight decay may scale the values."""
        gradient = parameter.grad
        if gradient is None or not held.base or held.state != FRESH:  # cleared, or used before
            return
        if is_dense(gradient) and looks_zero(gradient) and _are_scaled(held.base, fingerprint(parameter)):
            self._zero[held.number] = self._zero.get(held.number, 0) + 1
        else:
            self._sloped.add(held.number)
            self._zero.pop(held.number, None)

    def _examine(self, held: Held, parameter: Any) -> None:
        """Record once whether an unchanged parameter has random values."""
        if held.number not in self._random and len(self._random) < _MOST:
            self._random[held.number] = is_initial(parameter)
            # Only these are judged by it: the singular values of a frozen backbone would take seconds.
            left_out = parameter.requires_grad and not (held.panel is not None and held.panel.number)
            self._drawn[held.number] = left_out and is_drawn(parameter)


def keep_base(held: Held, parameter: Any) -> None:
    """Handle a load: a parameter that gets its first values again, or an average of them, has not moved.

    Only one with a gradient, of which averages are taken: a copy that follows another model by loads moves slowly.
    """
    now = version(parameter)
    if held.base and held.base_version == now - 1 and parameter.grad is not None:
        pairs = zip(map(float, held.base), map(float, fingerprint(parameter)), strict=False)
        if all(abs(one - other) <= _ROUNDING * abs(one) for one, other in pairs):
            held.base_version = now


def is_dense(gradient: Any) -> bool:
    """Return True if a gradient has a value for each element."""
    return str(gradient.layout) == "torch.strided" and has_values(gradient)


def _are_scaled(before: list[str], now: list[str]) -> bool:
    """Return True if values are the earlier ones, or these times one factor between 0 and 1."""
    pairs = [(float(one), float(other)) for one, other in zip(before, now, strict=True)]
    size = sum(abs(one) for one, _ in pairs)
    factor = sum(abs(other) for _, other in pairs) / size if size else 1.0
    return factor <= 1.0 and all(abs(other - factor * one) <= _ROUNDING * abs(one) for one, other in pairs)


def first_values(held: Held, parameter: Any, step: int) -> None:
    """Record some values of a parameter, to find out later whether it has moved."""
    if held.base is None and not is_lazy(parameter):
        held.base, held.base_version, held.base_step = fingerprint(parameter), version(parameter), step


def fingerprint(parameter: Any) -> list[str]:
    """Return some values of a parameter on the CPU, as text; an empty list without values to read."""
    local = stored(part(parameter))
    if not local.is_cpu or not local.numel() or not has_values(local) or is_freed(local):
        return []
    local = local.detach()
    flat = local.reshape(-1)
    values = flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS]
    return [repr(value) for value in values.tolist()]
