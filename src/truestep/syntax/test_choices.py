"""Numbers that a program chooses by samples of its test, and the figures of the test that it computes with them.

The statements of a function are read in their order. A variable is "of the test" if its name says so, or if it was made
of such variables and of no part with another name. Chosen are thresholds, temperatures and the like: by a function that
gets two values of the test (scores and labels), by the largest value of a curve, by a loop over candidates, by
``max`` or ``argmax`` over candidates, and by the ``fit`` of a calibrator.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TEST = frozenset({"test", "te", "tst"})
_FOR_CHOICE = frozenset({"dev", "va", "val", "valid", "validation", "vld"})
_OTHER = _FOR_CHOICE | {
    "train", "training", "tr", "trn", "fit", "cal", "calib", "calibration", "calibrated", "tune", "tuning", "oof",
    "fold", "folds", "cv", "source", "inner", "adapt", "support", "fake", "synthetic",
}  # fmt: skip
_NUMBERS = frozenset({
    "threshold", "thresholds", "thresh", "thr", "thrs", "cutoff", "cutoffs", "tau", "temperature", "temperatures",
    "platt", "isotonic", "calibrator", "calibration", "calib",
})  # fmt: skip
"""Words of what is chosen."""
_SHARES = frozenset({"weight", "weights", "blend", "alpha", "ensemble", "mix", "scale", "bias", "offset", "temp"})
"""Words of other numbers, which count beside a verb only."""
_VERBS = frozenset({
    "best", "choose", "find", "fit", "tune", "optimal", "optimize", "optimise", "search", "select", "pick", "learn",
    "calibrate", "sweep", "optimum",
})  # fmt: skip
_FIGURES = frozenset({
    "acc", "accuracy", "f1", "auc", "auroc", "precision", "recall", "loss", "error", "ece", "metric", "metrics", "brier",
    "report", "mcc", "nll", "ap",
})  # fmt: skip
_EVALUATES = frozenset({"evaluate", "eval", "evaluation", "test", "score", "scores", "report", "measure"}) | _FIGURES
_SHOWS = frozenset({"plot", "scatter", "hist", "plt", "ax", "axes", "axvline", "axhline", "draw", "show", "fig", "sns"})
_BATCHES = frozenset({"loader", "dataloader", "dl", "ds", "dataset", "set", "data", "batches", "iter", "testloader"})
_OPEN = re.compile(
    r"oracle|upper|bound|ideal|optimis|possible|ceiling|hindsight|leak|cheat|achiev|attain|maximal|headroom|diagnos|"
    r"sanity|illustrat|reference|\bbest\b.{0,20}\bon\b.{0,8}\btest\b|\btuned\b.{0,16}\btest\b",
    re.IGNORECASE,
)
"""Words by which a program says that it knows what such a figure is."""
_ARGUMENTS_OF_BEST = frozenset({"argmax", "argmin", "nanargmax", "nanargmin", "idxmax", "idxmin"})
_MINIMISERS = frozenset({"minimize", "minimize_scalar", "brute", "fmin", "brent", "golden", "differential_evolution"})
_MODELS = frozenset({
    "model", "models", "net", "network", "clf", "classifier", "detector", "trainer", "learner", "encoder", "scaler",
    "prep", "preprocessor", "vocab", "module", "self", "device", "criterion", "estimator", "predictor", "regressor",
})  # fmt: skip
"""Words of variables that are made with the training data, and are no part of them."""
_WORD = re.compile(r"f1|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Statement = tuple[ast.stmt, bool, "ast.For | None"]
"""A simple statement, or the head of a loop; whether it may not run; the loop over candidates around it."""


class TestChoice(NamedTuple):
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


def test_choices(tree: ast.Module) -> list[TestChoice]:
    """Return the numbers that a file chooses by its test, if it has a part for choices.

    >>> text = "thr = best_threshold(y_test, p_test)\\nprint(f1_score(y_test, p_test > thr), len(x_val))"
    >>> [(one.name, one.by, ast.unparse(one.figure)) for one in test_choices(ast.parse(text))]
    [('thr', 'y_test', 'f1_score(y_test, p_test > thr)')]
    >>> test_choices(ast.parse(text.replace("best_threshold(y_test, p_test)", "best_threshold(y_val, p_val)")))
    []
    """
    if not any(_words(one) & _FOR_CHOICE for one in _names(tree)):
        return []
    found: list[TestChoice] = []
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            found.extend(_Reading(scope).choices())
    return [one for one in found if not _chosen_elsewhere(tree, one)]


def of_part(name: str) -> str:
    """Return "test" or "choice" for a variable with the name of such a part of the data; "" for others.

    >>> of_part("x_test"), of_part("val_loader"), of_part("test_val"), of_part("x")
    ('test', 'choice', '', '')
    """
    words = _words(name)
    found = [part for part, its in (("test", _TEST), ("choice", _FOR_CHOICE)) if words & its]
    return found[0] if len(found) == 1 else ""


def _chosen_elsewhere(tree: ast.Module, choice: TestChoice) -> bool:
    """Return True if the same function also chooses by other samples: the figures of both are then compared."""
    used = {_last(one.func) for one in ast.walk(choice.node) if isinstance(one, ast.Call)}
    used = {name for name in used if _words(name) & (_NUMBERS | _SHARES | _VERBS)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and _last(one.func) in used and not _within(one, choice.node):
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
        self._places: set[str] = set()
        """Variables with the place of a best value."""
        self._calibrators: set[str] = set()
        if not isinstance(scope, ast.Module):
            given = [one.arg for one in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]
            both = any(_words(one) & _FOR_CHOICE for one in given)
            self._parts = {one: "other" for one in given if _words(one) & _TEST and not both}

    def choices(self) -> Iterator[TestChoice]:
        """Yield the choices with a figure behind them."""
        scope, chosen = self._scope, list[_Chosen]()
        first = 0 if isinstance(scope, ast.Module) else min(one.lineno for one in (scope, *scope.decorator_list))
        for statement, guarded, loop in _statements(scope.body, guarded=False, loop=None):
            for one in list(chosen):
                if _OPEN.search(" ".join(_texts(statement))) and self._reads(statement, one.followed):
                    chosen.remove(one)
                    continue
                figure = None if isinstance(statement, ast.For) else self._figure(statement, one)
                if figure is not None:
                    chosen.remove(one)
                    always = one.always and not guarded and loop is None
                    yield TestChoice(one.name, one.by, one.node, figure, always, first)
            new = self._chooses(statement, loop)
            self._store(statement, chosen)
            if new and not _OPEN.search(" ".join((getattr(scope, "name", ""), *_texts(statement)))):
                names, by = new
                always = loop is not None or not guarded
                if not any(_words(name) & _TEST for name in names):
                    self._parts |= dict.fromkeys(names, "")  # a number holds no samples
                    samples = {one for text in by for one in self._sources(ast.parse(text, mode="eval").body)}
                    chosen.append(_Chosen(names[0], by[0], statement, always, set(names), samples))

    # --- parts of the data -------------------------------------------------------------------------------------

    def part(self, node: ast.AST) -> str:
        """Return the part of the data that an expression is of: "test", "other", or "" if it is unknown."""
        named, made = False, set[str]()
        for name in _names(node):
            words = _words(name)
            if words & _OTHER:
                return "other"
            if name in self._parts and not (words & _TEST and self._parts[name] != "other"):
                made.add("" if words & _MODELS else self._parts[name])
            elif words & _TEST:
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
            if key is ... or (isinstance(key, str) and _words(key) & _TEST):
                inner = self._sources(node.value) or {ast.unparse(node.value)}
                return {f"{one}[{ast.unparse(node.slice)}]" for one in inner}
            return self._sources(node.value)
        if isinstance(node, ast.Name):
            return self._samples.get(node.id) or {node.id}
        if isinstance(node, ast.Attribute) and _words(node.attr) & _TEST:
            return {ast.unparse(node)}
        inner = [one for one in ast.iter_child_nodes(node) if not isinstance(node, ast.Call) or one is not node.func]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner.append(node.func.value)
        return {source for one in inner for source in self._sources(one)}

    def _store(self, statement: ast.stmt, chosen: list[_Chosen]) -> None:
        """Record what a statement stores."""
        for target, value in _pairs(statement):
            for name in _stored(target):
                follows = [one for one in chosen if self._reads(value, one.followed)]
                for one in chosen:
                    if one in follows or isinstance(statement, ast.AugAssign):
                        one.followed |= {name} if one in follows else set()
                    else:
                        one.followed.discard(name)
                words = _words(name)
                own = "other" if words & _OTHER else "test" if words & _TEST else ""
                made = self._sources(value)
                splits = isinstance(value, ast.Call) and isinstance(target, ast.Tuple) and _splits(value)
                self._parts[name] = own or self.part(value)
                self._samples[name] = {name} if splits else made
                if isinstance(value, ast.Call) and _words(_last(value.func)) & _NUMBERS:
                    self._calibrators.add(name)
                is_place = any(_last(one.func) in _ARGUMENTS_OF_BEST for one in _calls(value))
                (self._places.add if is_place else self._places.discard)(name)
                is_curve = isinstance(value, ast.Call) and "curve" in _words(_last(value.func))
                is_curve = is_curve and len(self._of_test(_given(value))) > 1  # type: ignore[arg-type]
                (self._curves.add if is_curve else self._curves.discard)(name)
        for call in _calls(statement) if isinstance(statement, ast.Expr) else ():
            if _last(call.func) in ("append", "extend", "update") and isinstance(call.func, ast.Attribute):
                for name in _stored(call.func.value):
                    self._parts[name] = "".join(map(self.part, call.args[:1])) or self._parts.get(name, "")
                    self._samples[name] = {one for part in call.args[:1] for one in self._sources(part)}

    @staticmethod
    def _reads(node: ast.AST, names: set[str]) -> bool:
        return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))

    # --- choices -----------------------------------------------------------------------------------------------

    def _chooses(self, statement: ast.stmt, loop: ast.For | None) -> tuple[list[str], list[str]] | None:
        """Return the variables that get a number chosen by the test, and a value by which it is chosen."""
        for call in _calls(statement):
            fitted = self._fitted(statement, call)
            if fitted:
                return fitted
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        names, value = _stored(statement.targets[0]), statement.value
        if loop is not None and (found := self._kept(statement, loop)):
            return found
        base = _unwrapped(value)
        if isinstance(base, ast.Subscript) and _stored(base.value) and set(_stored(base.value)) & self._curves:
            best = any(_last(one.func) in _ARGUMENTS_OF_BEST for one in _calls(base.slice))
            if names and (best or self._reads(base.slice, self._places)):
                return names, _stored(base.value)
        for call in _calls(value):
            texts = self._searched(call) or self._called(call, names)
            if texts:
                known = [name for name in names if _words(name) & _NUMBERS and not _words(name) & _FIGURES]
                known = known or [name for name in names if not _words(name) & _FIGURES]
                return (known, texts) if known else None
        return None

    def _called(self, call: ast.Call, names: list[str]) -> list[str]:
        """Return the values of the test by which a function chooses a number, by its name or that of the number."""
        function = _words(_last(call.func))
        if "curve" in function or "quantile" in function or "percentile" in function or function & _SHOWS:
            return []
        verb = bool(function & _VERBS)
        named = any(_words(name) & _NUMBERS and not _words(name) & _FIGURES for name in names)
        if function & _FIGURES and not verb:
            return []
        if not (verb and function & (_NUMBERS | _SHARES)) and not (named and (verb or function & _NUMBERS)):
            return []
        texts = self._of_test(_given(call))
        batches = [text for text in texts if _words(text) & _BATCHES]
        return texts if len(texts) > 1 else batches if verb else []

    def _searched(self, call: ast.Call) -> list[str]:
        """Return the values of the test by which an expression chooses among candidates."""
        function, inner = _last(call.func), list[ast.AST]()
        if function in ("max", "min"):
            inner = [word.value for word in call.keywords if word.arg == "key" and isinstance(word.value, ast.Lambda)]
        elif function in _ARGUMENTS_OF_BEST:
            inner = [one for one in ast.walk(call) if isinstance(one, ast.ListComp | ast.GeneratorExp)]
        elif function in _MINIMISERS:
            inner = [one for one in call.args if isinstance(one, ast.Lambda)]
        for one in inner:
            body = one.body if isinstance(one, ast.Lambda) else one.elt  # type: ignore[attr-defined]
            for each in _calls(body):
                texts = self._of_test(_given(each))
                if len(texts) > 1:
                    return texts
        return []

    def _kept(self, statement: ast.Assign, loop: ast.For) -> tuple[list[str], list[str]] | None:
        """Return the variables that keep the best candidate of a loop, if its figure is one of the test."""
        assert isinstance(loop.target, ast.Name)
        candidate = loop.target.id
        names = [
            name
            for target, value in _pairs(statement)
            for name in _stored(target)
            if isinstance(value, ast.Name) and value.id == candidate
        ]
        if not names or self.part(loop.iter):
            return None
        branches = [one for one in ast.walk(loop) if isinstance(one, ast.If) and statement in one.body]
        compared = [one.test for one in branches if isinstance(one.test, ast.Compare)]
        compared = [one for one in compared if isinstance(one.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE)]
        for one in ast.walk(loop) if compared else ():
            if isinstance(one, ast.Call) and not _words(_last(one.func)) & (_SHOWS | {"print"}):
                texts = self._of_test(_given(one))
                if len(texts) > 1 and any(candidate in _names(each) for each in _given(one)):
                    return names, texts
        return None

    def _fitted(self, statement: ast.stmt, call: ast.Call) -> tuple[list[str], list[str]] | None:
        """Return the calibrator that a call fits on values of the test."""
        if not isinstance(call.func, ast.Attribute) or not call.func.attr.startswith(("fit", "calibrate")):
            return None
        holder = call.func.value
        made = isinstance(holder, ast.Call) and bool(_words(_last(holder.func)) & _NUMBERS)
        names = _stored(statement.targets[0]) if made and isinstance(statement, ast.Assign) else _stored(holder)
        if not made and not any(name in self._calibrators or _words(name) & _NUMBERS for name in names):
            return None
        texts = self._of_test(call.args)
        several = len(texts) > 1 or any(_words(text) & _BATCHES for text in texts)
        return (names, texts) if names and several else None

    # --- figures -----------------------------------------------------------------------------------------------

    def _figure(self, statement: ast.stmt, chosen: _Chosen) -> ast.expr | None:
        """Return the expression that computes a figure of the test with a chosen number."""
        for one in ast.walk(statement):
            if isinstance(one, ast.Call):
                sides = _given(one)
                with_it = [side for side in sides if self._reads(side, chosen.followed)]
                texts = self._of_test(sides)
                function = _words(ast.unparse(one.func))
                whole = len(texts) > 1 or (any(_words(text) & _BATCHES for text in texts) and function & _EVALUATES)
                whole = whole and self._same(chosen, sides)
                if with_it and whole and not function & _SHOWS and "print" not in function:
                    return one
            else:
                pair = _sides(one)
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


def _statements(body: list[ast.stmt], *, guarded: bool, loop: ast.For | None) -> Iterator[_Statement]:
    """Yield the statements of a function in their order, without those of inner functions."""
    for one in body:
        if isinstance(one, _INNER):
            continue
        if isinstance(one, ast.For | ast.AsyncFor | ast.While):
            if isinstance(one, ast.For):
                yield ast.copy_location(ast.For(one.target, one.iter, [], []), one), guarded, None
            inner = one if isinstance(one, ast.For) and isinstance(one.target, ast.Name) else None
            yield from _statements(one.body, guarded=True, loop=inner)
            yield from _statements(one.orelse, guarded=True, loop=loop)
        elif isinstance(one, ast.If):
            main = "__name__" in ast.unparse(one.test)
            yield from _statements(one.body, guarded=guarded or not main, loop=loop)
            yield from _statements(one.orelse, guarded=True, loop=loop)
        elif isinstance(one, ast.With | ast.AsyncWith):
            yield from _statements(one.body, guarded=guarded, loop=loop)
        elif isinstance(one, ast.Try):
            for part in (one.body, *(handler.body for handler in one.handlers), one.orelse, one.finalbody):
                yield from _statements(part, guarded=True, loop=loop)
        else:
            yield one, guarded, loop


def _pairs(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a statement with their values."""
    if isinstance(statement, ast.For):
        yield statement.target, statement.iter
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and statement.value is not None:
        yield statement.target, statement.value
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        value = statement.value  # type: ignore[attr-defined]
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
                continue
        yield target, value


def _stored(target: ast.expr) -> list[str]:
    """Return the variables of a target; an attribute of an object is one, too."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for one in target.elts for name in _stored(one)]
    return [target.id] if isinstance(target, ast.Name) else []


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the variables, attributes and keys of an expression, without the functions that it calls."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Call):
            function = one.func.value if isinstance(one.func, ast.Attribute) else None
            waiting.extend(part for part in (function, *one.args, *one.keywords) if part is not None)
            continue
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
            yield one.value
        waiting.extend(ast.iter_child_nodes(one))


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides of a comparison with labels, or of an operation on decisions and labels."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return node.left, node.comparators[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.Mult | ast.Sub):
        return node.left, node.right
    return None


def _splits(call: ast.Call) -> bool:
    """Return True for a function that returns parts of its samples."""
    return bool(_words(_last(call.func)) & {"split", "halves", "half", "chunk", "partition", "divide", "random"})


def _unwrapped(node: ast.expr) -> ast.expr:
    """Return the expression in conversions such as ``float(x)`` and ``x.item()``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "round") and node.args:
            node = node.args[0]
        else:
            break
    return node


def _last(function: ast.expr) -> str:
    """Return the name of a function without the object or module before it."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _within(node: ast.AST, other: ast.AST) -> bool:
    return any(one is node for one in ast.walk(other))


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the names and texts of a statement."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}
