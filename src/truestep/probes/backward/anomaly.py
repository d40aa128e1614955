"""Detect that autograd's anomaly detection is on, and find the user's line that switches it on."""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import AnomalyModeSeen, Site
from truestep.probes.context.scene import Scene

_SWITCHES = ("set_detect_anomaly", "detect_anomaly")


class Anomaly:
    """Emits an event at sampled backward passes if anomaly detection is on."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._switch = functools.cache(_switch)

    def look(self, site: Site | None) -> None:
        """Emit an event if anomaly detection is on."""
        if not self._scene.torch.is_anomaly_enabled():
            return
        self._scene.tell(AnomalyModeSeen, site=site, switch=None if site is None else self._switch(site))


def _switch(site: Site) -> Site | None:
    """Return the only line of a file that switches anomaly detection on."""
    tree = source.parsed(site.path)
    if tree is None:
        return None
    calls = [node for node in source.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in _SWITCHES]
    if len(calls) != 1:
        return None
    call = calls[0]
    return Site(
        path=site.path,
        line=call.lineno,
        column=call.col_offset,
        end_line=call.end_lineno or call.lineno,
        end_column=call.end_col_offset if call.end_col_offset is not None else -1,
    )


def _name(function: ast.expr) -> str:
    """Return the last part of the name of a called function.

    >>> _name(ast.parse("torch.autograd.detect_anomaly", mode="eval").body)
    'detect_anomaly'
    """
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
