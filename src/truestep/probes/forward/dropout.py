"""Dropout by a function. Seam: the names in ``torch._VF`` that ``torch.nn.functional`` looks up at each call.

Observations are recorded for the surrounding model call, and emitted with it (`ModelCalled.dropout` and `sensitive`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.backward.chained_layers import DROPOUT
from truestep.probes.context.local_variables import argument
from truestep.probes.context.names import call_at
from truestep.probes.context.probe import Probe, sees
from truestep.probes.unread.statements import scope_of
from truestep.seams.code.weaving import compiling, teach_script
from truestep.seams.patch import patch

_SEAMS = ("dropout", "feature_dropout")
"""The others, for alpha dropout, are off where they are not given the mode."""
_PRODUCT = "MulBackward0"
_WITH_MODE = 3
"""So many positional arguments, and the third one is the mode."""


class DropoutProbe(Probe):
    """Records lines that apply dropout in evaluation, because they do not pass the mode to the function."""

    def install(self, stack: ExitStack) -> None:
        self._defaults: dict[int, bool] = {}
        """True by site if its call omits the mode."""
        self._computed: set[int] = set()
        """Sites with inputs that depend on parameters."""
        functions = self.scene.torch._VF
        for name in _SEAMS:
            for seam in (name, f"{name}_"):
                if hasattr(functions, seam):
                    self._replace(stack, functions, seam)

    def _replace(self, stack: ExitStack, functions: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(functions, name)
        scene, depth, coast = self.scene, self.scene.depth, self.scene.coast
        compiles, grad_enabled = compiling(scene.torch), scene.torch.is_grad_enabled
        frame = sys._getframe

        def dropout(input: Any, p: Any, train: Any) -> Any:
            if not compiles() and depth.inside == (2 if grad_enabled() else 1) and not coast.inside:
                if train:
                    self.met(input, p, frame(1))
                    if depth.inside == 2:
                        result = original(input, p, train)
                        self.mark(result)
                        return result
                elif depth.inside == 2:
                    self.followed(p, frame(1))
            elif train and scene.functions is not None and scene.functions.drops is not None:
                self.of_function(p, frame(1))
            return original(input, p, train)

        dropout.__name__ = dropout.__qualname__ = name
        patch(stack, functions, name, dropout)
        teach_script(stack, original, dropout)

    @sees
    def met(self, input: Any, p: Any, function: FrameType) -> None:
        """Record dropout inside a model: at a sampled step, or without gradients.

        Args:
            input: input of the dropout.
            p: dropout rate.
            function: frame of the public function.
        """
        scene, frame = self.scene, function.f_back
        if frame is None or not scene.active or scene.depth.fetching or not p or scene.sites.kind(frame.f_code):
            return
        site = scene.sites.at(frame)
        if scene.torch.is_grad_enabled():
            self.followed(p, function)
            if input.requires_grad:
                self._computed.add(id(site))
        elif id(site) in self._computed:
            scene.depth.drops = True
            if self._leaves_mode_out(site, frame):
                scene.depth.dropout = scene.depth.dropout or site

    @sees
    def of_function(self, p: Any, function: FrameType) -> None:
        """Record dropout in a call of a function that is a model."""
        functions, frame = self.scene.functions, function.f_back
        if functions is not None and functions.drops is not None and frame is not None and p:
            functions.drops.dropped(self.scene.sites.at(self.scene.sites.above(function)))

    @sees
    def mark(self, result: Any) -> None:
        """Mark the operation of a dropout on the tape, where it is a product."""
        if result.grad_fn is not None and result.grad_fn.name() == _PRODUCT:  # with a rate of 0, that of the input
            result.grad_fn.metadata[DROPOUT] = True

    @sees
    def followed(self, p: Any, function: FrameType) -> None:
        """Record the module with the mode that a call passes on, ``training=self.training``, at a sampled step."""
        scene, frame = self.scene, function.f_back
        if frame is None or not scene.active or not p or scene.sites.kind(frame.f_code):
            return
        if scene.depth.modal is None and _passes_mode(call_at(scene.sites.at(frame))):
            owner = argument(frame, "self")
            scene.depth.modal = owner if isinstance(owner, scene.torch.nn.Module) else None

    def _leaves_mode_out(self, site: Site | None, frame: FrameType) -> bool:
        known = self._defaults.get(id(site))
        if known is None:
            known = self._defaults[id(site)] = _leaves_mode_out(call_at(site), frame)
        return known


def _passes_mode(call: ast.Call | None) -> bool:
    """Return True if a call gets ``self.training``.

    >>> _passes_mode(ast.parse("F.dropout(x, 0.5, training=self.training)", mode="eval").body)
    True
    """
    given = [] if call is None else [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(ast.unparse(value) == "self.training" for value in given)


def _leaves_mode_out(call: ast.Call | None, frame: FrameType) -> bool:
    """Return True if a call names a function of torch itself, and does not pass the mode.

    A literal ``training=True`` counts if it is the only one of the function, and if another dropout there has the same
    rate and follows the mode.
    """
    if call is None or len(call.args) >= _WITH_MODE or any(isinstance(given, ast.Starred) for given in call.args):
        return False
    modes = [given.value for given in call.keywords if given.arg in (None, "training")]
    if modes and not (all(map(_is_true, modes)) and _follows_elsewhere(call, frame.f_code)):
        return False
    path = ast.unparse(call.func).split(".")
    owner: Any = frame.f_globals.get(path[0])
    for name in path[1:]:
        owner = vars(owner).get(name) if isinstance(owner, ModuleType) else None
    return isinstance(owner, FunctionType) and owner.__module__ == "torch.nn.functional"


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _follows_elsewhere(call: ast.Call, code: CodeType) -> bool:
    """Return True if the same function follows the mode where it applies this kind of dropout once more.

    Dropout that stays on by design has its own rate, or is applied more than once.
    """
    scope = scope_of(code)
    calls = [one for one in (() if scope is None else source.walk(scope)) if isinstance(one, ast.Call)]
    literal = [one for one in calls if any(given.arg == "training" and _is_true(given.value) for given in one.keywords)]
    alike = [one for one in calls if ast.unparse(one.func) == ast.unparse(call.func) and _rate(one) == _rate(call)]
    return len(literal) == 1 and any(map(_passes_mode, alike))


def _rate(call: ast.Call) -> str:
    """Return the expression of the rate; "" without one.

    >>> _rate(ast.parse("F.dropout(x, p=0.5)", mode="eval").body)
    '0.5'
    """
    given = call.args[1:2] or [one.value for one in call.keywords if one.arg == "p"]
    return ast.unparse(given[0]) if given else ""
