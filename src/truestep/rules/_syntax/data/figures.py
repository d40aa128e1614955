"""Figures of an evaluation with the wrong formula, from the syntax."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from truestep.rules._syntax.data.decisions import CONVERTED, is_called_on_module, ranked_by_decisions
from truestep.rules._syntax.data.formulas import powers_of_two, unlimited_overlaps
from truestep.rules._syntax.data.roles import Figure, figures, predicted, texts_in
from truestep.syntax import Program, Suspicion, dotted, names_in

_FALSE_NEGATIVE, _FALSE_POSITIVE = re.compile(r"^(?:fns?|false_neg\w*)$"), re.compile(r"^(?:fps?|false_pos\w*)$")
_TRUE_POSITIVE, _TRUE_NEGATIVE = re.compile(r"^(?:tps?|true_pos\w*)$"), re.compile(r"^(?:tns?|true_neg\w*)$")
_RECALL = re.compile(r"(?:^|_)(?:recalls?|sensitivity|tpr)(?:_|$)")
_PRECISION = re.compile(r"(?:^|_)precisions?(?:_|$)")
_OF_CLASSES = ("recall", "precision", "sensitivity", "tpr", "fn =", "fp =", "fns =", "fps =", "false_neg", "false_pos")
"""A file without these texts has no figure of classes."""
_R2 = re.compile(r"(?:^|_)(?:r2|r_squared|r2_score)(?:_|$)")
_TEACHER = re.compile(r"teacher|reference|oracle|expert|simulat|solver|truth|(?:^|_)ref(?:_|$)")
_RIGHT = re.compile(r"(?:^|_)(?:right|correct\w*|hits?|acc|accuracy|match(?:es|ed)?)(?:_|$)")
_UNEQUAL = tuple(
    f"sklearn.metrics.{name}"
    for name in (
        "r2_score", "precision_score", "recall_score", "roc_auc_score", "average_precision_score", "log_loss",
        "classification_report", "precision_recall_curve", "roc_curve", "explained_variance_score",
        "mean_absolute_percentage_error", "balanced_accuracy_score", "brier_score_loss",
    )
)  # fmt: skip
"""Functions of scikit-learn with another result if labels and predictions are exchanged."""
_COUNTED = frozenset({"sum", "mean", "count_nonzero"})


def wrong_formulas(program: Program, classes: int = 0) -> Iterator[Suspicion]:
    """Yield figures that their expression cannot be; ``classes`` is their number in a run, if it is known."""
    text = program.text.lower()
    yield from powers_of_two(program)
    if any(word in text for word in _OF_CLASSES):
        yield from _false_counts(program)
        yield from _classes(program)
    if "r2" in text or "r_squared" in text:
        yield from _spread_of_predictions(program)
    if "min" in text and "max" in text:
        yield from unlimited_overlaps(program)
    yield from _exchanged(program)
    yield from ranked_by_decisions(program, classes)
    if _compares_same(program.text):
        yield from _compared_with_itself(program)


def _false_counts(program: Program) -> Iterator[Suspicion]:
    """Yield false negatives that are counted as false positives are, and the other way round."""
    for pattern, name, of_predictions in (
        (_FALSE_NEGATIVE, "false negatives", False),
        (_FALSE_POSITIVE, "false positives", True),
    ):
        for one in figures(program, pattern):
            sides = _sides(one, program)
            positive = None if sides is None else _positive(one, sides[1], program)
            if sides is None or positive is None:
                continue
            predictions = of_predictions is positive
            if sides[0] == {True: not predictions, False: predictions}:
                other = "false positives" if name == "false negatives" else "false negatives"
                yield Suspicion(
                    one.value,
                    f"`{one.name}` counts the {other}, not the {name}",
                    f"counts the {other}",
                    "turn both comparisons round",
                )


def _positive(one: Figure, kind: str, program: Program) -> bool | None:
    """Return True if the true positives beside a count have its class, False if they do not; None if unknown."""
    found = set()
    for pattern, has in ((_TRUE_POSITIVE, True), (_TRUE_NEGATIVE, False)):
        beside = [each for each in figures(program, pattern) if each.context.scope is one.context.scope]
        if has and not beside:
            return None
        for each in beside:
            sides = _sides(each, program)
            if sides is None or sides[1] != kind or sides[0][True] is not sides[0][False]:
                return None
            found.add(sides[0][True] is has)
    return found.pop() if len(found) == 1 else None


def _sides(one: Figure, program: Program) -> tuple[dict[bool, bool], str] | None:
    """Return whether predictions (True) and labels (False) have a class in a count of both, and its text."""
    for node in ast.walk(one.value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.Mult):
            parts = [_has_class(part) for part in (node.left, node.right)]
            if parts[0] is None or parts[1] is None or parts[0][2] != parts[1][2]:
                continue
            found = {}
            for value, has, _ in (parts[0], parts[1]):
                role = predicted(value, one.context, one.order, program)
                if role is not None:
                    found[role] = has
            return (found, parts[0][2]) if len(found) == 2 else None
    return None


def _has_class(node: ast.expr) -> tuple[ast.expr, bool, str] | None:
    """Return the values of a condition, whether it holds for a class, and the text of the class."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        return (node.operand, False, "") if dotted(node.operand) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        return (node.right, False, "") if node.left.value == 1 and dotted(node.right) else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        kind, equal = node.comparators[0], isinstance(node.ops[0], ast.Eq)
        if isinstance(kind, ast.Constant) and kind.value in (0, 1):
            return node.left, equal == bool(kind.value), ""
        return node.left, equal, ast.unparse(kind)
    return (node, True, "") if dotted(node) else None


def _classes(program: Program) -> Iterator[Suspicion]:
    """Yield recalls that are divided by the predictions of a class, and precisions by its labels."""
    for pattern, name, right in ((_RECALL, "recall", False), (_PRECISION, "precision", True)):
        for one in figures(program, pattern):
            for node in ast.walk(one.value):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                    continue
                if _counts(node.right, one, program) is not (not right):
                    continue
                wrong = "labels" if right else "predictions"
                yield Suspicion(
                    node,
                    f"the {name} divides by the number of {wrong} of a class: it is the "
                    f"{'recall' if right else 'precision'}",
                    f"divides by {wrong}",
                    f"divide by the number of {'predictions' if right else 'labels'} of the class",
                )


def _counts(node: ast.expr, one: Figure, program: Program) -> bool | None:
    """Return True if a divisor counts the predictions of a class, False if it counts labels; None if unknown."""
    parts = {name.rpartition(".")[2].lower() for name in names_in(node)}
    negatives, positives = (any(map(each.search, parts)) for each in (_FALSE_NEGATIVE, _FALSE_POSITIVE))
    if negatives != positives:
        return positives
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "sum":
            axis = (
                inner.args[0]
                if inner.args
                else next((w.value for w in inner.keywords if w.arg in ("axis", "dim")), None)
            )
            rows = _rows_are_labels(dotted(inner.func.value), one, program)
            if isinstance(axis, ast.Constant) and axis.value in (0, 1) and rows is not None:
                return (axis.value == 0) is rows
        if isinstance(inner, ast.Subscript) and (key := dotted(inner.value)):
            roles = {
                predicted(call.node.args[0], call.context, call.order, program)
                for call in program.method("update")
                if call.key == key and len(call.node.args) == 1
            }
            return roles.pop() if len(roles) == 1 else None
    return None


def _rows_are_labels(key: str, one: Figure, program: Program) -> bool | None:
    """Return True if the rows of a table of counts are the labels, False for predictions; None if unknown."""
    found = set()
    for binding in program.values.bindings(key, one.context.scope) if key else ():
        call = program.call_at.get(binding.value) if binding.value is not None else None
        if call is not None and call.method in ("zeros", "zeros_like", "new_zeros"):
            continue  # counted below
        if call is None or call.name != "sklearn.metrics.confusion_matrix":
            return None
        first = call.argument(0, "y_true")
        role = None if first is None else predicted(first, call.context, call.order, program)
        found.add(None if role is None else not role)
    for binding in program.values.bindings(f"{key}[]", one.context.scope) if key else ():
        target = getattr(binding.node, "target", None)
        index = target.slice if isinstance(target, ast.Subscript) else None
        if binding.how != "augmented" or not isinstance(index, ast.Tuple) or len(index.elts) != 2:
            return None
        rows, columns = (predicted(part, binding.context, binding.order, program) for part in index.elts)
        found.add(None if rows is None or columns is not (not rows) else not rows)
    return found.pop() if len(found) == 1 else None


def _spread_of_predictions(program: Program) -> Iterator[Suspicion]:
    """Yield coefficients of determination with the spread of the predictions as their divisor."""
    for one in figures(program, _R2):
        for node in ast.walk(one.value):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            spread = program.values.origin(node.right, one.context, one.order)[0]
            centred = [each for each in ast.walk(spread) if _is_centred(each)]
            guesses = {ast.unparse(each.left) for each in centred}  # type: ignore[attr-defined]
            if len(guesses) == 1 and _differences(node.left, one, program) == guesses:
                yield Suspicion(
                    node,
                    "the divisor of R2 is the spread of the predictions, not that of the labels",
                    "divides by the spread of the predictions",
                    "divide by the sum of squares of the labels around their mean",
                )


def _differences(node: ast.expr, one: Figure, program: Program) -> set[str]:
    """Return the texts of the predictions that labels are subtracted from, or that are subtracted from labels."""
    found = set()
    for each in ast.walk(program.values.origin(node, one.context, one.order)[0]):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub):
            sides = {predicted(side, one.context, one.order, program): side for side in (each.left, each.right)}
            if sides.keys() != {True, False}:
                return set()
            made = program.values.origin(sides[True], one.context, one.order)[0]
            if any(_TEACHER.search(name.lower()) for name in (*texts_in(made), *texts_in(sides[True]))):
                return set()
            found.add(ast.unparse(sides[True]))
    return found


def _is_centred(node: ast.AST) -> bool:
    """Return True for a value minus its own mean."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or not isinstance(node.right, ast.Call):
        return False
    inner = node.right
    values = inner.args[0] if inner.args else inner.func.value if isinstance(inner.func, ast.Attribute) else None
    mean = dotted(inner.func).rpartition(".")[2] == "mean"
    return mean and values is not None and ast.unparse(values) == ast.unparse(node.left)


def _exchanged(program: Program) -> Iterator[Suspicion]:
    """Yield metrics of scikit-learn that get the predictions in place of the labels."""
    for call in program.starting("sklearn.metrics."):
        if call.name not in _UNEQUAL or len(call.node.args) < 2 or call.unpacks:
            continue
        roles = [predicted(part, call.context, call.order, program) for part in call.node.args[:2]]
        if roles == [True, False]:
            yield Suspicion(
                call.node,
                f"`{call.method}` gets the predictions as the labels, and the labels as the predictions",
                "has its arguments exchanged",
                "pass the labels first",
            )


def _compares_same(text: str) -> bool:
    """Return True if a text may compare a name with itself."""
    parts = text.split(" == ")
    return any(
        (left := re.search(r"[\w.]+$", before[-80:])) is not None and behind.startswith(left[0])
        for before, behind in itertools.pairwise(parts)
    )


def _compared_with_itself(program: Program) -> Iterator[Suspicion]:
    """Yield counts of right answers of values that are compared with themselves."""
    for scope in program.scopes:
        for key, bindings in scope.bindings.items():
            if not _RIGHT.search(key.lower()):
                continue
            for one in bindings:
                node = None if one.value is None or one.how not in ("=", "augmented") else _only_comparison(one.value)
                if node is not None and ast.unparse(node.left) == ast.unparse(node.comparators[0]):
                    text = dotted(node.left)
                    if text and not _RIGHT.search(text.lower()):
                        yield Suspicion(
                            node,
                            f"`{text}` is compared with itself, and always right",
                            "is always true",
                            "compare the predictions with the labels",
                        )


def _only_comparison(node: ast.expr) -> ast.Compare | None:
    """Return the comparison that a value is a count or a mean of, and nothing else; None for other values."""
    counted = False
    while isinstance(node, ast.Call):
        called = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
        owned = isinstance(node.func, ast.Attribute) and not is_called_on_module(node)
        if called not in _COUNTED and called not in CONVERTED and called != "item":
            return None
        counted = counted or called in _COUNTED
        if owned and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif node.args:
            node = node.args[0]
        else:
            return None
    found = counted and isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)
    return node if found and isinstance(node, ast.Compare) else None
