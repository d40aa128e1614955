"""Numbers that a program chooses by samples of its test, and the figures of the test that it computes with them.

The statements of a function are read in their order. A variable is "of the test" if its name says so, or if it was made
of such variables and of no part with another name. Chosen are thresholds, temperatures and the like: by a function that
gets two values of the test (scores and labels), by the largest value of a curve, by a loop over candidates, by
``max`` or ``argmax`` over candidates, and by the ``fit`` of a calibrator.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from truestep.syntax.choices.bests import at_a_level, is_best, is_part, keeps_best
from truestep.syntax.choices.nodes import (
    calls_in,
    given_to,
    last_name,
    names_of,
    pairs_of,
    sides_of,
    splits,
    statements_of,
    stored_in,
    texts_of,
    unwrapped,
    within,
)
from truestep.syntax.choices.results import Results
from truestep.syntax.choices.words import (
    ARGUMENTS_OF_BEST,
    BATCHES,
    CONVERSIONS,
    EVALUATES,
    FIGURES,
    FOR_CHOICE,
    GAINS,
    LOSSES,
    MINIMISERS,
    MODELS,
    NO_PARTS,
    NUMBERS,
    OPEN,
    OTHER,
    SHARES,
    SHOWS,
    TEST,
    VERBS,
    WORST,
    words_of,
)


class ChosenByTest(NamedTuple):
    """A number that is chosen by samples of the test.

    Attributes:
        name: the variable, such as "threshold".
        by: source of one of the values by which it is chosen.
        node: the statement that chooses it.
        figure: the expression that computes a figure of the test with it.
        always: True if both run whenever the function does.
        first: first line of the function, 0 for a module.
    """

    name: str
    by: str
    node: ast.stmt
    figure: ast.expr
    always: bool
    first: int


def chosen_by_test(tree: ast.Module) -> list[ChosenByTest]:
    """Return the numbers that a file chooses by its test, if it has a part for choices.

    >>> text = "thr = best_threshold(y_test, p_test)\\nprint(f1_score(y_test, p_test > thr), len(x_val))"
    >>> [(one.name, one.by, ast.unparse(one.figure)) for one in chosen_by_test(ast.parse(text))]
    [('thr', 'y_test', 'f1_score(y_test, p_test > thr)')]
    >>> chosen_by_test(ast.parse(text.replace("best_threshold(y_test, p_test)", "best_threshold(y_val, p_val)")))
    []
    """
    words = set().union(*map(words_of, set(names_of(tree))))
    if not (words & FOR_CHOICE and words & TEST):
        return []
    found: list[ChosenByTest] = []
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            if any(words_of(one) & TEST for one in names_of(scope)):
                found.extend(_Reading(scope).choices())
    return [one for one in found if not _chosen_elsewhere(tree, one)]


def _chosen_elsewhere(tree: ast.Module, choice: ChosenByTest) -> bool:
    """Return True if the same function also chooses by other samples: the figures of both are then compared."""
    calls = [one for one in calls_in(choice.node) if any(choice.by in ast.unparse(part) for part in given_to(one))]
    used = {last_name(one.func) for one in calls}
    used = {name for name in used if words_of(name) & (NUMBERS | SHARES | VERBS)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and last_name(one.func) in used and not within(one, choice.node):
            return True
    return False


@dataclass(slots=True)
class _Chosen:
    """A choice, the variables that hold its number or were made with it, and the samples that it is made by."""

    name: str
    by: str
    node: ast.stmt
    always: bool
    followed: set[str]
    samples: set[str]
    collected: bool = False
    """True if the best of collected figures is taken: a table of methods may name its best one, and show it."""


class _Reading:
    """The statements of one function, read in their order.

    Args:
        scope: the function or the module.
    """

    def __init__(self, scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope = scope
        self._parts: dict[str, str] = {}
        """Variable to "test", "other" or "" (unknown)."""
        self._samples: dict[str, set[str]] = {}
        """Variable to the sources of the samples of the test that it was made of."""
        self._curves: set[str] = set()
        self._levels: set[str] = set()
        """Variables with comparisons or distances: their largest value is at a level, and is not the best."""
        self._places: set[str] = set()
        """Variables with the place of a best value."""
        self._calibrators: set[str] = set()
        self._results = Results(self._of_test)
        self._taken: list[str] = []
        """Samples of the collected figures of which the latest statement takes the best one."""
        if not isinstance(scope, ast.Module):
            given = [one.arg for one in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]
            both = any(words_of(one) & FOR_CHOICE for one in given)
            self._parts = {one: "other" for one in given if words_of(one) & TEST and not both}

    def choices(self) -> Iterator[ChosenByTest]:
        """Yield the choices with a figure behind them."""
        scope, chosen = self._scope, list[_Chosen]()
        first = 0 if isinstance(scope, ast.Module) else min(one.lineno for one in (scope, *scope.decorator_list))
        for statement, guarded, loop in statements_of(scope.body, guarded=False, loop=None):
            for one in list(chosen):
                if OPEN.search(" ".join(texts_of(statement))) and self._reads(statement, one.followed):
                    chosen.remove(one)
                    continue
                figure = None if isinstance(statement, ast.For) else self._figure(statement, one)
                if figure is not None:
                    chosen.remove(one)
                    always = one.always and not guarded and loop is None
                    yield ChosenByTest(one.name, one.by, one.node, figure, always, first)
            new = self._chooses(statement, loop)
            self._results.read(statement, loop)
            self._store(statement, chosen)
            texts = [getattr(scope, "name", ""), *texts_of(statement)]
            if new and not OPEN.search(" ".join(texts)) and not any(words_of(text) & WORST for text in texts):
                names, by = new
                always = loop is not None or not guarded
                if not any(words_of(name) & TEST for name in names):
                    self._parts |= dict.fromkeys(names, "")  # a number holds no samples
                    samples = {one for text in by for one in self._sources(ast.parse(text, mode="eval").body)}
                    name = next((one for one in names if one.strip("_")), names[0])
                    collected = bool(self._taken)
                    chosen.append(_Chosen(name, by[0], statement, always, set(names), samples, collected))

    # --- parts of the data -------------------------------------------------------------------------------------

    def part(self, node: ast.AST) -> str:
        """Return the part of the data that an expression is of: "test", "other", or "" if it is unknown."""
        named, made = False, set[str]()
        for name in names_of(node):
            words = words_of(name)
            if words & NO_PARTS:
                continue
            if words & OTHER:
                return "other"
            if name in self._parts and not (words & TEST and self._parts[name] != "other"):
                made.add("" if words & MODELS else self._parts[name])
            elif words & TEST:
                named = True
        if not named and "other" in made:
            return "other"
        return "test" if named or "test" in made else ""

    def _of_test(self, nodes: Iterable[ast.AST]) -> list[str]:
        """Return the sources of those that are of the test, each once; none if one is of another part."""
        parts = [(self.part(node), ast.unparse(node)) for node in nodes]
        if any(part == "other" for part, _ in parts):
            return []
        return list(dict.fromkeys(text for part, text in parts if part == "test"))

    def _sources(self, node: ast.AST) -> set[str]:
        """Return the sources of the samples of the test in an expression: variables, or parts of them."""
        if self.part(node) != "test":
            return set()
        if isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else ...
            if key is ... or (isinstance(key, str) and words_of(key) & TEST):
                inner = self._sources(node.value) or {ast.unparse(node.value)}
                return {f"{one}[{ast.unparse(node.slice)}]" for one in inner}
            return self._sources(node.value)
        if isinstance(node, ast.Name):
            return self._samples.get(node.id) or {node.id}
        if isinstance(node, ast.Attribute) and words_of(node.attr) & TEST:
            return {ast.unparse(node)}
        parts = [one for one in ast.iter_child_nodes(node) if not isinstance(node, ast.Call) or one is not node.func]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        return {source for one in parts for source in self._sources(one)}

    def _store(self, statement: ast.stmt, chosen: list[_Chosen]) -> None:
        """Record the variables that a statement stores."""
        for target, value in pairs_of(statement):
            for name in stored_in(target):
                follows = [one for one in chosen if self._reads(value, one.followed)]
                for one in chosen:
                    if one in follows or isinstance(statement, ast.AugAssign):
                        one.followed |= {name} if one in follows else set()
                    else:
                        one.followed.discard(name)
                words = words_of(name)
                own = "other" if words & OTHER else "test" if words & TEST else ""
                made = self._sources(value)
                divided = isinstance(value, ast.Call) and isinstance(target, ast.Tuple) and splits(value)
                self._parts[name] = own or self.part(value)
                self._samples[name] = {name} if divided else made
                if isinstance(value, ast.Call) and words_of(last_name(value.func)) & NUMBERS:
                    self._calibrators.add(name)
                is_level = at_a_level(value) or self._reads(value, self._levels)
                (self._levels.add if is_level else self._levels.discard)(name)
                is_place = not is_level and any(last_name(one.func) in ARGUMENTS_OF_BEST for one in calls_in(value))
                (self._places.add if is_place else self._places.discard)(name)
                is_curve = isinstance(value, ast.Call) and "curve" in words_of(last_name(value.func))
                is_curve = is_curve and len(self._of_test(given_to(value))) > 1  # type: ignore[arg-type]
                (self._curves.add if is_curve else self._curves.discard)(name)
        for call in calls_in(statement) if isinstance(statement, ast.Expr) else ():
            if last_name(call.func) in ("append", "extend", "update") and isinstance(call.func, ast.Attribute):
                for name in stored_in(call.func.value):
                    self._parts[name] = "".join(map(self.part, call.args[:1])) or self._parts.get(name, "")
                    self._samples[name] = {one for part in call.args[:1] for one in self._sources(part)}

    @staticmethod
    def _reads(node: ast.AST, names: set[str]) -> bool:
        return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))

    # --- choices -----------------------------------------------------------------------------------------------

    def _chooses(self, statement: ast.stmt, loop: ast.For | None) -> tuple[list[str], list[str]] | None:
        """Return the variables that get a number chosen by the test, and a value by which it is chosen."""
        self._taken = []
        for call in calls_in(statement):
            fitted = self._fitted(statement, call)
            if fitted:
                return fitted
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        names, value = stored_in(statement.targets[0]), statement.value
        if loop is not None and (found := self._kept(statement, loop)):
            return found
        base = unwrapped(value)
        if isinstance(base, ast.Subscript) and stored_in(base.value) and set(stored_in(base.value)) & self._curves:
            best = any(last_name(one.func) in ARGUMENTS_OF_BEST for one in calls_in(base.slice))
            best = best and not at_a_level(base.slice) and not self._reads(base.slice, self._levels)
            if names and (best or self._reads(base.slice, self._places)):
                return names, stored_in(base.value)
        self._taken = self._results.chosen(value, names)
        if self._taken and names:
            return names, self._taken
        for call in calls_in(value):
            texts = self._searched(call) or self._called(call, names)
            if texts:
                known = [name for name in names if words_of(name) & NUMBERS and not words_of(name) & FIGURES]
                known = known or [name for name in names if not words_of(name) & FIGURES]
                return (known, texts) if known else None
        return None

    def _called(self, call: ast.Call, names: list[str]) -> list[str]:
        """Return the values of the test by which a function chooses a number, by its name or that of the number."""
        function = words_of(last_name(call.func))
        if (
            "curve" in function
            or "quantile" in function
            or "percentile" in function
            or function & (SHOWS | CONVERSIONS)
        ):
            return []
        if any(isinstance(one, ast.Constant) and type(one.value) is float for one in given_to(call)):
            return []  # a level
        verb = bool(function & VERBS)
        named = any(words_of(name) & NUMBERS and not words_of(name) & FIGURES for name in names)
        if function & FIGURES and not verb:
            return []
        if not (verb and function & (NUMBERS | SHARES)) and not (named and (verb or function & NUMBERS)):
            return []
        texts = self._of_test(given_to(call))
        batches = [text for text in texts if words_of(text) & BATCHES]
        return texts if len(texts) > 1 else batches if verb else []

    def _searched(self, call: ast.Call) -> list[str]:
        """Return the values of the test by which an expression chooses among candidates."""
        function, inner = last_name(call.func), list[ast.AST]()
        if function in ("max", "min"):
            inner = [word.value for word in call.keywords if word.arg == "key" and isinstance(word.value, ast.Lambda)]
        elif function in ARGUMENTS_OF_BEST:
            inner = [one for one in ast.walk(call) if isinstance(one, ast.ListComp | ast.GeneratorExp)]
        elif function in MINIMISERS:
            inner = [one for one in call.args if isinstance(one, ast.Lambda)]
        for one in inner:
            body = one.body if isinstance(one, ast.Lambda) else one.elt  # type: ignore[attr-defined]
            if at_a_level(body) or is_part(one, body):
                continue
            for each in calls_in(body):
                texts = self._of_test(given_to(each))
                if len(texts) > 1 and is_best(function, body, each):
                    return texts
        return []

    def _kept(self, statement: ast.Assign, loop: ast.For) -> tuple[list[str], list[str]] | None:
        """Return the variables that keep the best candidate of a loop, if its figure is one of the test."""
        assert isinstance(loop.target, ast.Name)
        candidate = loop.target.id
        names = [
            name
            for target, value in pairs_of(statement)
            for name in stored_in(target)
            if isinstance(value, ast.Name) and value.id == candidate
        ]
        if not names or self.part(loop.iter):
            return None
        branches = [one for one in ast.walk(loop) if isinstance(one, ast.If) and statement in one.body]
        for one in ast.walk(loop) if branches else ():
            if isinstance(one, ast.Call) and not words_of(last_name(one.func)) & (SHOWS | {"print"}):
                texts = self._of_test(given_to(one))
                used = any(candidate in names_of(each) for each in given_to(one)) and not is_part(loop, one)
                if len(texts) > 1 and used and any(keeps_best(branch, one) for branch in branches):
                    return names, texts
        return None

    def _fitted(self, statement: ast.stmt, call: ast.Call) -> tuple[list[str], list[str]] | None:
        """Return the calibrator that a call fits on values of the test."""
        if not isinstance(call.func, ast.Attribute) or not call.func.attr.startswith(("fit", "calibrate")):
            return None
        holder = call.func.value
        made = isinstance(holder, ast.Call) and bool(words_of(last_name(holder.func)) & NUMBERS)
        names = stored_in(statement.targets[0]) if made and isinstance(statement, ast.Assign) else stored_in(holder)
        if not made and not any(name in self._calibrators or words_of(name) & NUMBERS for name in names):
            return None
        texts = self._of_test(call.args)
        several = len(texts) > 1 or any(words_of(text) & BATCHES for text in texts)
        return (names, texts) if names and several else None

    # --- figures -----------------------------------------------------------------------------------------------

    def _figure(self, statement: ast.stmt, chosen: _Chosen) -> ast.expr | None:
        """Return the expression that computes a figure of the test with a chosen number."""
        for one in ast.walk(statement):
            if isinstance(one, ast.Call):
                sides = given_to(one)
                with_it = [side for side in sides if self._reads(side, chosen.followed)]
                texts = self._of_test(sides)
                function = words_of(ast.unparse(one.func))
                whole = len(texts) > 1 or (any(words_of(text) & BATCHES for text in texts) and function & EVALUATES)
                whole = whole and self._same(chosen, sides)
                whole = whole and not (chosen.collected and not function & (EVALUATES | GAINS | LOSSES))
                if with_it and whole and not function & SHOWS and "print" not in function:
                    return one
            else:
                pair = sides_of(one)
                for left, right in (pair, pair[::-1]) if pair else ():
                    if (
                        self._reads(left, chosen.followed)
                        and not self._reads(right, chosen.followed)
                        and self.part(left) == self.part(right) == "test"
                        and self._same(chosen, [left, right])
                    ):
                        return one  # type: ignore[return-value]
        return None

    def _same(self, chosen: _Chosen, values: list[ast.expr]) -> bool:
        """Return True if values are of the samples by which a number is chosen, or of a part of them."""
        here = {source for value in values for source in self._sources(value)}
        return any(
            one == other or one.startswith(f"{other}[") or other.startswith(f"{one}[")
            for one in here
            for other in chosen.samples
        )
