"""Settings of layers that no training uses: read from the layers of a new model, and found in the source."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from truestep import source
from truestep.events import LayerSettingRead, Site
from truestep.probes.context.scene import Scene

_LARGE_EPSILON = 0.1
"""Epsilons in use go up to 1e-2; this one is a hundredth of the variance that it is added to, or more."""
_SLOW_MOMENTUM = 0.99
"""Momentum as other frameworks define it: in torch, running statistics are then those of the last batch."""
_MOST = 8


class LayerSettings:
    """Examines the layers of each model once, when it is first called."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._told = 0

    def look(self, module: Any, model: int, site: Site | None) -> None:
        """Emit the settings out of range of the layers of a model.

        Args:
            module: the model.
            model: its number.
            site: line that calls the model, for layers that are not found in the source.
        """
        for path, layer in module.named_modules():
            if self._told >= _MOST:
                return
            for setting in _odd(layer):
                value, kind = getattr(layer, setting), type(layer).__name__
                self._told += 1
                self._scene.tell(
                    LayerSettingRead,
                    model=model,
                    layer=path,
                    kind=kind,
                    setting=setting,
                    value=repr(value),
                    site=self._made(type(layer), setting, value) or site,
                )

    def _made(self, kind: type, setting: str, value: object) -> Site | None:
        """Return the first line of the program that makes a layer of this kind with this setting; None without one."""
        order = [name for name in inspect.signature(kind).parameters if name != "self"]
        place = order.index(setting) if setting in order else len(order)
        likely = None
        for path in self._scene.sites.own_files():
            for call, given in _calls(path, kind.__name__, setting, place):
                if isinstance(given, ast.Constant) and given.value != value:
                    continue
                end = call.end_lineno or call.lineno, call.end_col_offset or -1
                site = Site(path, call.lineno, call.col_offset, *end)
                if isinstance(given, ast.Constant):
                    return site
                likely = likely or site
        return likely


def _odd(layer: Any) -> Iterator[str]:
    """Yield the settings of a layer of torch that are out of range."""
    bases = {base.__name__ for base in type(layer).__mro__ if base.__module__.startswith("torch.nn.")}
    if bases & {"_NormBase", "LayerNorm", "GroupNorm", "RMSNorm"} and _number(layer, "eps") >= _LARGE_EPSILON:
        yield "eps"
    if "_NormBase" in bases and layer.track_running_stats:
        momentum = _number(layer, "momentum")
        if momentum > 1 or momentum < 0 or _SLOW_MOMENTUM <= momentum < 1:
            yield "momentum"
    if "_DropoutNd" in bases and _number(layer, "p") >= 1:
        yield "p"
    if "LeakyReLU" in bases and _number(layer, "negative_slope") >= 1:
        yield "negative_slope"


def _number(layer: Any, setting: str) -> float:
    """Return a setting as a number; 0.0 if it is none."""
    value = getattr(layer, setting, None)
    return float(value) if isinstance(value, int | float) else 0.0


def _calls(path: str, kind: str, setting: str, place: int) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls in a file that make a layer and give a setting, each with the argument."""
    tree = source.parsed(path)
    for node in source.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name != kind:
            continue
        for keyword in node.keywords:
            if keyword.arg == setting:
                yield node, keyword.value
        if len(node.args) > place and not any(isinstance(one, ast.Starred) for one in node.args):
            yield node, node.args[place]
