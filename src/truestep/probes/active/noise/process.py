"""Shares of samples and noise in an input: of a diffusion process that keeps the variance, their squares sum to one.

The input, the samples and the noise are tensors of one shape at the call of the model. The shares of each sample are
the solution of its linear equations, which holds in all of its numbers.
"""

from __future__ import annotations

import ast
import contextlib
from types import FrameType
from typing import Any

from truestep.events import NoiseScaled, Site
from truestep.probes.active.noise.targets import argument_of, drawn_by, expression_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import call_at
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Path, called
from truestep.probes.copies.objects import Refused
from truestep.probes.variables.origins import place_of

_MOST_READS = 8
_MOST_MODELS = 8
_MOST_TENSORS = 6
_ROWS = 64
_COLUMNS = 4_096
_LEAST_ROWS = 4
_APART = 1e-2
"""Least sine of the angle, squared, between a sample and its noise."""
_ROUNDING = 2e-3
_CLEARLY = 0.02


class NoiseShares:
    """Emits `NoiseScaled`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are computed.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._left: dict[int, int] = {}
        """Model to the number of calls that are still looked at."""
        self._first: dict[int, float] = {}
        """Model to the share of the noise in a first sample."""

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType) -> None:
        """Read the inputs of a call in training that has returned."""
        left = self._left.setdefault(model, _MOST_READS if len(self._left) < _MOST_MODELS else 0)
        own = self._scene.sites.own(1)
        if not left or own is None:
            return
        self._left[model] = left - 1
        torch = self._scene.torch
        with contextlib.suppress(Refused), self._aside():
            names = variables(own)
            for path, value in called(module, frame).tensors(torch).items():
                if not _is_plain(value):
                    continue
                tensors = {name: one for name, one in names.items() if type(one) is torch.Tensor}
                wrong = self._read(model, value, tensors, own)
                if wrong is not None:
                    self._scene.emit(NoiseScaled(model=model, site=_made_at(site, path, own), wrong=wrong))
                    return

    def _read(self, model: int, value: Any, tensors: dict[str, Any], frame: FrameType) -> bool | None:
        """Return True if the noise has a share that is a variance, False for a deviation; None for another mixture.

        A share that is the same in all samples, at each step, is a setting, and not of a process.
        """
        alike = {
            name: one
            for name, one in tensors.items()
            if one.shape == value.shape and one.dtype == value.dtype and _is_plain(one) and one is not value
        }
        drawn = [name for name in alike if drawn_by(ast.Name(name), frame, None) is not None]
        if len(drawn) != 1 or not 2 <= len(alike) <= _MOST_TENSORS:
            return None
        whole, noise = _rows(value), _rows(alike.pop(drawn[0]))
        for one in alike.values():
            kept, share = _shares(self._scene.torch, _rows(one), noise, whole)
            if len(share) < _LEAST_ROWS:
                continue
            of_variance, of_deviation = (kept.square() + share - 1).abs(), (kept.square() + share.square() - 1).abs()
            if bool((of_deviation < _ROUNDING).all()):
                if bool((of_variance > _CLEARLY).any()):
                    return False
            elif bool((of_variance < _ROUNDING).all()) and bool((of_deviation > _CLEARLY).any()):
                first = self._first.setdefault(model, float(share[0]))
                return True if bool(((share - first).abs() > _ROUNDING).any()) else None
        return None


def _made_at(site: Site | None, path: Path, frame: FrameType) -> Site | None:
    """Return the place of the expression that makes an argument; that of the call if it stands in it."""
    node = call_at(site)
    if node is None or not isinstance(argument_of(node, path), ast.Name):
        return site
    expression = expression_of(node, path, frame)
    return site if expression is None else place_of(frame.f_code, expression)


def _is_plain(value: Any) -> bool:
    plain = value.is_cpu and value.is_floating_point() and not value.requires_grad and value.dim() >= 2
    return bool(plain and has_values(value) and len(value) >= _LEAST_ROWS and value[0].numel() > 1)


def _rows(value: Any) -> Any:
    """Return the numbers of some samples, as a table of doubles."""
    return value.detach()[:_ROWS].flatten(1)[:, :_COLUMNS].double()


def _shares(torch: Any, kept: Any, noise: Any, whole: Any) -> tuple[Any, Any]:
    """Return the shares of two tables in a third one, for the rows that determine them; empty if one row has none."""
    one, two = (kept * kept).sum(1), (noise * noise).sum(1)
    both, with_one, with_two = (kept * noise).sum(1), (kept * whole).sum(1), (noise * whole).sum(1)
    apart = one * two - both * both
    clear = apart > _APART * one * two
    divisor = torch.where(clear, apart, torch.ones_like(apart))
    first, second = (with_one * two - with_two * both) / divisor, (with_two * one - with_one * both) / divisor
    left = (whole - first[:, None] * kept - second[:, None] * noise).abs().amax(1)
    exact = left <= _ROUNDING * whole.abs().amax(1).clamp(min=1e-6)
    if not bool(exact[clear].all()):
        clear = torch.zeros_like(clear)
    return first[clear], second[clear]
