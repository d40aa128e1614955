"""Branches for a new best figure: they compare a variable with the best value so far, and replace that."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from truestep import source
from truestep.events import Site
from truestep.syntax import is_made_by_losses

_LOSSES = frozenset({"loss", "losses", "mse", "mae", "rmse", "nll", "error", "err", "perplexity", "ppl"})
_SHARES = frozenset({"acc", "accuracy", "iou", "miou", "dice", "f1", "auc", "auroc", "precision", "recall"})
_BEST = frozenset({"best", "min", "minimum", "lowest", "least", "max", "maximum", "highest", "top"})
_TRAINING = frozenset({"train", "training", "trn", "tr"})
_TEST = frozenset({"test", "tst", "te"})
_VALIDATION = frozenset({"val", "valid", "validation", "dev"})
_KEEPING = re.compile(r"save|state_dict|deepcopy|clone|checkpoint")
_WORD = re.compile(r"[^\W_]+")
_BEST_OF_SELF = re.compile(rf"\bself\..*?(?<![^\W_])(?:{'|'.join(sorted(_BEST))})(?![^\W_])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Guard:
    """A branch that is taken if a figure is greater, or smaller, than the best one so far, which it becomes."""

    name: str
    """The variable with the figure."""
    loss: bool
    """Whether it has the name of a loss."""
    share: bool
    """Whether it has the name of an accuracy."""
    greater: bool
    """Whether greater figures lead into the branch."""
    site: Site
    """The comparison."""
    best: str = ""
    """The source of the variable with the best figure so far."""
    keeps: bool = False
    """Whether the branch calls a function that keeps weights."""
    owner: str = ""
    """Class with the branch."""
    returns: bool = False
    """Whether another branch by the best figure loads weights: those that are kept are to return to."""


def guard_at(path: str, line: int) -> Guard | None:
    """Return the innermost such branch around a line of a file; None without one."""
    inside = [guard for first, last, guard in guards(path) if first <= line <= last]
    return inside[-1] if inside else None


def guarded_losses(path: str) -> frozenset[str]:
    """Return the variables with names of losses that such branches of a file compare."""
    return frozenset(guard.name for _, _, guard in guards(path) if guard.loss)


def of_validation(guard: Guard, names: Iterable[str]) -> list[str]:
    """Return the variables with the figure of a validation, beside a guard that compares one of the training or test.

    There are none for a guard with a best value that has the same name, too, or that keeps weights to return to after a
    spike: it is meant.

    >>> guard = Guard("train_loss", True, False, False, Site("", 0), "best_loss")
    >>> of_validation(guard, ["loss", "val_loss", "val_acc", "test_loss", "best_val_loss", "train_val_loss"])
    ['val_loss']
    >>> of_validation(Guard("test_acc", False, True, True, Site("", 0), "best"), ["val_acc", "test_acc", "train_acc"])
    ['val_acc']
    """
    words = _words(guard.name)
    named = [names for names in (_TRAINING, _TEST) if words & names]
    if len(named) != 1 or words & _VALIDATION or _words(guard.best) & named[0] or guard.returns:
        return []
    known = [(name, _words(name)) for name in names]
    alike = [kind for kind in (_LOSSES, _SHARES) if words & kind]
    return [
        name
        for name, its in known
        if its & _VALIDATION and not its & (_TRAINING | _TEST | _BEST) and any(its & kind for kind in alike)
    ]


@functools.lru_cache(maxsize=64)
def guards(path: str) -> tuple[tuple[int, int, Guard], ...]:
    """Return the branches of a file with their first and last lines, outer ones first."""
    found: list[tuple[int, int, Guard]] = []
    tree = source.parsed(path) or ast.Module([], [])
    classes = [one for one in source.walk(tree) if isinstance(one, ast.ClassDef)]
    returns = _returning(tree)
    for node in source.walk(tree):
        compared = _compared(node.test) if isinstance(node, ast.If) else None
        if compared is None or not isinstance(node, ast.If):
            continue
        figure, best, greater, compare = compared
        place = Site(path, compare.lineno, compare.col_offset, compare.end_lineno or 0, compare.end_col_offset or 0)
        for branch, direction in ((node.body, greater), (node.orelse, not greater)):
            if branch and _assigns(branch, best):
                loss, share = (not _words(figure).isdisjoint(names) for names in (_LOSSES, _SHARES))
                loss = loss or (not share and is_made_by_losses(source.walk(tree), figure))
                owners = [one.name for one in classes if one.lineno <= node.lineno <= (one.end_lineno or 0)]
                guard = Guard(
                    figure, loss and not share, share and not loss, direction, place,
                    best, any(map(_keeps, branch)), owners[-1] if owners else "", best in returns,
                )  # fmt: skip
                found.append((branch[0].lineno, branch[-1].end_lineno or 0, guard))
    return tuple(sorted(found, key=lambda one: (one[0], -one[1])))


def _compared(test: ast.expr) -> tuple[str, str, bool, ast.Compare] | None:
    """Return a figure, the best one, True if the figure must be greater, and the comparison; None for other conditions.

    The test for a first figure, as in ``best is None or loss < best``, is no other condition.
    """
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    known = [part for part in parts if not _is_first(part)]
    if len(known) != 1 or not isinstance(known[0], ast.Compare) or len(known[0].ops) != 1:
        return None
    compare = known[0]
    left, right = compare.left, compare.comparators[0]
    greater = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    if not greater and not isinstance(compare.ops[0], ast.Lt | ast.LtE):
        return None
    if not best_in(right):
        left, right, greater = right, left, not greater
    best = best_in(right)
    if not isinstance(left, ast.Name) or best_in(left) or not best:
        return None
    return left.id, best, greater, compare


def _returning(tree: ast.Module) -> set[str]:
    """Return the best figures that a branch which loads weights is taken by, itself or by a function of the file."""
    functions = [node for node in source.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    loads = {node.name for node in functions if "load_state_dict" in ast.unparse(node)} | {"load_state_dict"}
    compared = {
        place.id: bests
        for node in source.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Compare) and (bests := _bests(node.value))
        for place in node.targets
        if isinstance(place, ast.Name)
    }
    found: set[str] = set()
    for node in source.walk(tree):
        if isinstance(node, ast.If) and any(loads & _called(one) for one in node.body):
            names = {one.id for one in ast.walk(node.test) if isinstance(one, ast.Name)}
            found |= _bests(node.test).union(*(compared.get(name, set()) for name in names))
    return found


def _bests(test: ast.expr) -> set[str]:
    return {best for one in ast.walk(test) if isinstance(one, ast.expr) and (best := best_in(one))}


def _called(statement: ast.stmt) -> set[str]:
    """Return the last parts of the names of the functions that a statement calls."""
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return {ast.unparse(one).rpartition(".")[2] for one in calls}


def _assigns(branch: list[ast.stmt], target: str) -> bool:
    """Return True if a statement of a branch, or of blocks within it, assigns a variable, also among others."""
    assigned = (
        one
        for statement in branch
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign)
        for place in node.targets
        for one in (place.elts if isinstance(place, ast.Tuple | ast.List) else [place])
    )
    return any(ast.unparse(one) == target for one in assigned)


def _keeps(statement: ast.stmt) -> bool:
    """Return True if a statement calls a function that keeps weights, by its name."""
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(_KEEPING.search(ast.unparse(one).lower()) for one in calls)


def _is_first(part: ast.expr) -> bool:
    """Return True for a condition of the first evaluation: ``best is None``, ``epoch == 0``, ``not best``."""
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        return True
    return isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is | ast.Eq)


def best_in(node: ast.expr) -> str:
    """Return the source of a variable with the best figure so far, without a tolerance beside it; "" for others."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return best_in(node.left)
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return ""
    name = ast.unparse(node)
    return "" if _words(name).isdisjoint(_BEST) else name


def names_best_of_self(path: str) -> bool:
    """Return True if a line of a file can name an attribute of ``self`` with the best figure: then it pays to parse."""
    return any(map(_BEST_OF_SELF.search, source.read(path).lines))


def _words(name: str) -> set[str]:
    return set(_WORD.findall(name.lower()))
