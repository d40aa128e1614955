"""Dropout in functions that are models: applied by a function of torch, or by a mask of random numbers."""

from __future__ import annotations

import ast
import functools
import re
from types import CodeType, FrameType
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import call_at
from truestep.probes.context.scene import Scene
from truestep.probes.unread.statements import scope_of

_CHECKS = 4
_DRAWS = frozenset({"rand", "rand_like", "bernoulli", "bernoulli_", "uniform_"})
_RATE = re.compile(r"drop|keep|(^|_)p($|_)", re.IGNORECASE)
_FLAG = re.compile(r"drop|train|eval|sampl|mc|stochastic|noise|(^|_)p($|_)", re.IGNORECASE)
_SAMPLES = re.compile(
    r"mc|monte|uncert|sampl|ensemble|bayes|epistemic|augment|tta|thompson|explor|posterior|stochas|nois|drop",
    re.IGNORECASE,
)


class Drops:
    """Follows dropout in the calls of functions that are models.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._state: Any = None
        self._site: Site | None = None
        """The line of dropout of torch in the call under way."""
        self._left: dict[Site, int] = {}
        """Line of a mask to the number of checks that are left; of one that once changed no result, -1."""

    def begin(self) -> None:
        """Handle the start of a call without gradients."""
        self._site = None
        self._state = self._scene.torch.default_generator.get_state()

    def dropped(self, site: Site | None) -> None:
        """Handle dropout of torch that is on, at a line of the program."""
        self._site = self._site or site

    def changes(self, site: Site | None, module: Any, frame: FrameType) -> bool:
        """Return True if dropout is on in a call: the rate of a mask can be zero, which a copy shows.

        Args:
            site: its line.
            module: the model; None if it cannot be copied.
            frame: a frame of this package inside of the call.
        """
        if site is None or site is self._site:
            return site is not None
        left = self._left.get(site, _CHECKS)
        if left > 0:
            checks = self._scene.checks
            draws = module is not None and checks is not None and checks.function_draws(module, frame)
            self._left[site] = left = left - 1 if draws else -1
        return left >= 0

    def end(self, codes: list[CodeType]) -> Site | None:
        """Return the line that applied dropout in the call that ends; None if there is none.

        Args:
            codes: the code of the model, and of the functions that it calls.
        """
        state, self._state = self._state, None
        if self._site is not None:
            return self._site
        torch = self._scene.torch
        if state is None or torch.equal(state, torch.default_generator.get_state()):
            return None
        return next((site for one in codes if (site := mask_line(one)) is not None), None)


@functools.lru_cache(maxsize=256)
def mask_line(code: CodeType) -> Site | None:
    """Return the expression of a function that compares random numbers with a rate that is called one of dropout."""
    scope = scope_of(code)
    for node in () if scope is None else source.walk(scope):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                drawn = (_is_draw(left) and _is_rate(right)) or (_is_draw(right) and _is_rate(left))
            case ast.Call(func=ast.Attribute(attr=("bernoulli" | "bernoulli_" as name)), args=args):
                drawn = bool(name) and any(map(_is_rate, args))
            case _:
                continue
        if drawn:
            end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
            return Site(code.co_filename, node.lineno, node.col_offset, end_line, end_column, code.co_name)
    return None


def _is_draw(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DRAWS


def _is_rate(node: ast.expr) -> bool:
    names = [
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    ]
    return any(map(_RATE.search, names))


def on_purpose(site: Site | None, frame: FrameType | None = None) -> bool:
    """Return True if a call says that it is random: it passes a flag or a rate, or its function is named for it.

    Args:
        site: its line.
        frame: its frame; None if no variables are read.
    """
    call = call_at(site)
    if site is None or call is None or _SAMPLES.search(site.function):
        return True
    if any(isinstance(one, ast.Constant) and (one.value is True or type(one.value) is float) for one in call.args):
        return True
    values = {} if frame is None else variables(frame)
    if any(isinstance(one, ast.Name) and values.get(one.id) is True for one in call.args):
        return True
    return any(map(_says_random, call.keywords))


def _says_random(given: ast.keyword) -> bool:
    """Return True if an argument can turn dropout on.

    >>> texts = "training=False", "drop=0.0", "evaluate=True", "training=flag", "p=0.1", "evaluate=False", "scale=2"
    >>> [any(map(_says_random, ast.parse(f"f({text})", mode="eval").body.keywords)) for text in texts]
    [False, False, False, True, True, True, False]
    """
    if given.arg is None:
        return True
    if not _FLAG.search(given.arg):
        return False
    return not isinstance(given.value, ast.Constant) or bool(given.value.value) is not ("eval" in given.arg.lower())
