"""Figures of the test that a program collects, one for each candidate, and the candidate that it takes of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from truestep.syntax.choices.nodes import calls_in, given_to, last_name, names_of, pairs_of, stored_in, unwrapped
from truestep.syntax.choices.words import ARGUMENTS_OF_BEST, BATCHES, EVALUATES, GAINS, LOSSES, words_of

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
_CHOSEN = frozenset({"best", "optimal", "top", "winner", "chosen", "selected"})
_OF_FOLDS = frozenset({"fold", "folds", "split", "splits", "class", "cls", "group", "label"})
"""Words of candidates that are parts of the data."""


class Collected(NamedTuple):
    """Figures of the test.

    Attributes:
        by: sources of the samples.
        gain: True if a large figure is a good one; None if that is unknown.
        place: place or key of the figure in the value of one candidate; None if it is alone.
    """

    by: list[str]
    gain: bool | None
    place: int | str | None = None


class Results:
    """Variables with collected figures of the test.

    Args:
        of_test: returns the sources of expressions of the test, none if one is of another part.
    """

    def __init__(self, of_test: Callable[[list[ast.expr]], list[str]]) -> None:
        self._of_test = of_test
        self._figures: dict[str, Collected] = {}
        """Variable of a loop to the figure that it holds."""
        self._made: dict[str, str] = {}
        """Variable to the candidate that it was made with, such as a model for a rate."""
        self._collected: dict[str, Collected] = {}

    def read(self, statement: ast.stmt, loop: ast.For | None) -> None:
        """Record the figures that a statement stores or collects."""
        candidate = loop.target.id if loop is not None and isinstance(loop.target, ast.Name) else ""
        for target, value in pairs_of(statement):
            names = stored_in(target)
            for name in names:
                self._figures.pop(name, None)
                self._made.pop(name, None)
                self._collected.pop(name, None)
            collected = self._of_comprehension(value)
            figure = self._figure(value, candidate)
            if figure is None and candidate and isinstance(value, ast.Call) and self._is_made(value, candidate):
                self._made |= dict.fromkeys(names, candidate)
            if len(names) == 1 and collected is not None:
                self._collected[names[0]] = _named(collected, names[0])
            elif len(names) == 1 and figure is not None:
                self._figures[names[0]] = _named(figure, names[0])
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                self._collect(target.value.id, value, candidate)
        for call in calls_in(statement) if isinstance(statement, ast.Expr) else ():
            if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and call.args:
                for name in stored_in(call.func.value):
                    self._collect(name, call.args[0], candidate)

    def chosen(self, value: ast.expr, names: list[str]) -> list[str]:
        """Return the samples of the test by which an expression takes the best of collected figures."""
        for call in calls_in(value):
            function = last_name(call.func)
            largest = "min" not in function
            if function in ("max", "min", "sorted", *ARGUMENTS_OF_BEST):
                found = self._of(call)
                key = next((word.value for word in call.keywords if word.arg == "key"), None)
                turned = key is not None and any(isinstance(one, ast.USub) for one in ast.walk(key))
                named = any(words_of(name) & _CHOSEN for name in names)
                if found is None or (function == "sorted" and not named):
                    continue
                right = found.gain is None or function == "sorted" or found.gain == (largest != turned)
                if right and _is_read(found.place, key) and (named or found.gain is not None):
                    return found.by
        return []

    # --- parts -------------------------------------------------------------------------------------------------

    def _of(self, call: ast.Call) -> Collected | None:
        """Return the collected figures that a search reads, by their variable or in place."""
        parts = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        for part in parts:
            name = unwrapped(part)
            if isinstance(name, ast.Name) and name.id in self._collected:
                return self._collected[name.id]
            found = self._of_comprehension(part)
            if found is not None:
                return found
        return None

    def _collect(self, name: str, value: ast.expr, candidate: str) -> None:
        found = self._figure_in(value, candidate) if candidate else None
        if found is not None:
            self._collected[name] = _named(found, name)

    def _figure_in(self, value: ast.expr, candidate: str) -> Collected | None:
        """Return the figure in the value of one candidate: alone, or the first one of a tuple or a dict."""
        parts: list[tuple[int | str | None, ast.expr]] = [(None, value)]
        if isinstance(value, ast.Tuple | ast.List):
            parts = [(place, one) for place, one in enumerate(value.elts)]
        elif isinstance(value, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else "" for key in value.keys]
            parts = [(str(key), one) for key, one in zip(keys, value.values, strict=True)]
        elif isinstance(value, ast.Call) and value.keywords and last_name(value.func) == "dict":
            parts = [(word.arg or "", word.value) for word in value.keywords]
        for place, one in parts:
            base = unwrapped(one)
            held = self._figures.get(base.id) if isinstance(base, ast.Name) else self._figure(base, candidate)
            if held is not None:
                return _named(held, place if isinstance(place, str) else "")._replace(place=place)
        return None

    def _of_comprehension(self, value: ast.expr) -> Collected | None:
        if not isinstance(value, _COMPREHENSIONS) or len(value.generators) != 1:
            return None
        target = value.generators[0].target
        if not isinstance(target, ast.Name) or self._of_test([value.generators[0].iter]):
            return None
        return self._figure_in(value.value if isinstance(value, ast.DictComp) else value.elt, target.id)

    def _figure(self, value: ast.expr, candidate: str) -> Collected | None:
        """Return the figure of the test that a call computes for a candidate."""
        call = unwrapped(value)
        if not isinstance(call, ast.Call) or not candidate or words_of(candidate) & _OF_FOLDS:
            return None
        words = words_of(last_name(call.func))
        if not words & (EVALUATES | GAINS | LOSSES):
            return None
        given = given_to(call)
        texts = self._of_test([one for one in given if not isinstance(one, ast.Call) or self._of_test([one])])
        if len(texts) < 2 and not any(words_of(text) & BATCHES for text in texts):
            return None
        if not any(self._depends(one, candidate) for one in given):
            return None
        return Collected(texts, _is_gain(words))

    def _depends(self, given: ast.expr, candidate: str) -> bool:
        """Return True for an object made with a candidate, apart from the samples, or an operation with it."""
        if isinstance(given, ast.Name):
            return self._made.get(given.id) == candidate
        if isinstance(given, ast.Compare | ast.BinOp):
            sides = [given.left, *(given.comparators if isinstance(given, ast.Compare) else [given.right])]
            return any(isinstance(side, ast.Name) and side.id == candidate for side in sides)
        return isinstance(given, ast.Call) and self._is_made(given, candidate)

    def _is_made(self, call: ast.Call, candidate: str) -> bool:
        """Return True for a call that gets a candidate, and no samples of the test."""
        reads = any(candidate in names_of(one) or self._reads_made(one, candidate) for one in given_to(call))
        return reads and not self._of_test(list(given_to(call)))

    def _reads_made(self, node: ast.expr, candidate: str) -> bool:
        return any(self._made.get(name) == candidate for name in names_of(node))


def _is_read(place: int | str | None, key: ast.expr | None) -> bool:
    """Return True if a search compares the figure at a place of the value of each candidate."""
    if place is None or (place == 0 and key is None):
        return True
    read = [one.value for one in ast.walk(key) if isinstance(one, ast.Constant)] if key is not None else []
    return place in read


def _is_gain(words: frozenset[str]) -> bool | None:
    return True if words & GAINS and not words & LOSSES else False if words & LOSSES else None


def _named(figure: Collected, name: str) -> Collected:
    """Return a figure with the direction that the name of its variable shows, if that of its function does not."""
    single = {"accuracies": "accuracy", "losses": "loss", "loss": "loss"}
    words = frozenset(single.get(word, word.removesuffix("s")) for word in words_of(name))
    return figure if figure.gain is not None else figure._replace(gain=_is_gain(words))
