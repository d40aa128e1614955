"""Best values: which of the candidates an expression or a branch keeps."""

from __future__ import annotations

import ast

from truestep.syntax.choices.nodes import calls_in, last_name, pairs_of, stored_in
from truestep.syntax.choices.words import GAINS, LOSSES, words_of

_BELOW = ("min", "argmin", "nanargmin", "idxmin", "minimize", "minimize_scalar", "brute", "fmin", "brent", "golden")


def at_a_level(node: ast.AST) -> bool:
    """Return True for a comparison with a constant, or a distance: its largest value is at a level.

    >>> [at_a_level(ast.parse(text)) for text in ("np.argmax(tpr >= 0.95)", "abs(fnr - fpr).argmin()", "f1.argmax()")]
    [True, True, False]
    """
    for one in ast.walk(node):
        if isinstance(one, ast.Compare) and any(
            isinstance(side, ast.Constant) for side in (one.left, *one.comparators)
        ):
            return True
        if isinstance(one, ast.Call) and last_name(one.func) in ("abs", "fabs", "absolute", "searchsorted"):
            return True
    return False


def is_best(function: str, body: ast.expr, figure: ast.Call) -> bool:
    """Return True if a search for the largest or smallest value finds the best one, and not the worst.

    Args:
        function: name of the search, such as "argmax".
        body: the value of one candidate.
        figure: the call that computes it.
    """
    words = words_of(last_name(figure.func))
    up = sum(isinstance(one, ast.USub) for one in ast.walk(body)) % 2 == (function in _BELOW or "evolution" in function)
    return bool(words & GAINS - LOSSES) if up and not words & LOSSES else not up and bool(words & LOSSES)


def is_part(candidates: ast.AST, body: ast.AST) -> bool:
    """Return True if candidates select samples, such as groups."""
    if isinstance(candidates, ast.Lambda):
        names = {one.arg for one in candidates.args.args}
    elif isinstance(candidates, ast.For):
        names = set(stored_in(candidates.target))
    else:
        names = {name for one in candidates.generators for name in stored_in(one.target)}  # type: ignore[attr-defined]
    slices = [one.slice for one in ast.walk(body) if isinstance(one, ast.Subscript)]
    return any(isinstance(one, ast.Name) and one.id in names for part in slices for one in ast.walk(part))


def keeps_best(branch: ast.If, figure: ast.Call) -> bool:
    """Return True if a branch for a value better than the best so far stores it as the new best.

    Args:
        branch: the branch.
        figure: the call that computes the value.
    """
    test = branch.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    above = isinstance(test.ops[0], ast.Gt | ast.GtE)
    if not above and not isinstance(test.ops[0], ast.Lt | ast.LtE):
        return False
    left, right = test.left, test.comparators[0]
    stored = {name for one in branch.body for target, _ in pairs_of(one) for name in stored_in(target)}
    if isinstance(left, ast.Name) and left.id in stored:
        above, left, right = not above, right, left
    if not isinstance(right, ast.Name) or right.id not in stored:
        return False
    called = next(calls_in(left), figure)
    words = words_of(last_name(called.func)) | words_of(ast.unparse(left) if isinstance(left, ast.Name) else "")
    return bool(words & GAINS) and not words & LOSSES if above else bool(words & LOSSES)
