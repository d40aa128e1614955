"""Functions that expressions call: the object that is called, and the variables of a function of the user."""

from __future__ import annotations

import ast
from types import FunctionType, ModuleType
from typing import Any

from truestep import source
from truestep.probes.evaluation.libraries import of_math, of_numpy
from truestep.probes.evaluation.quotients import length
from truestep.probes.evaluation.values import NOWHERE, Unknown, Value
from truestep.seams.code.functions import code_of

_MOST_OF_ARRAY = 1 << 20
PLAIN = {
    "len": len, "float": float, "int": int, "bool": bool, "max": max, "min": min, "abs": abs, "range": range,
    "round": round, "sum": sum,
}  # fmt: skip
"""Functions of numbers and sequences that every program has."""
ORDERED = frozenset({
    "r2_score", "explained_variance_score", "mean_absolute_percentage_error", "precision_score", "recall_score",
    "precision_recall_fscore_support", "classification_report", "roc_auc_score", "average_precision_score", "log_loss",
    "precision_recall_curve", "roc_curve", "mean_squared_log_error",
})  # fmt: skip
"""Functions of scikit-learn that take the targets first, and another result if the predictions are first."""
_CRITERIA = {
    "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss",
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
}  # fmt: skip
"""Losses of torch.nn, and their functions."""
SCORES = frozenset({"accuracy_score", "multiclass_accuracy", "binary_accuracy"})
"""Functions of libraries that compare their first two arguments."""


def function_of(torch: Any, names: dict[str, Any], node: ast.expr, owner: Value | None, name: str) -> Any:
    """Return the object that is called; None if it is not known.

    Args:
        torch: the module.
        names: the variables.
        node: the expression that is called.
        owner: value of the object whose attribute it is; None for another expression.
        name: name of the attribute or variable.
    """
    if owner is not None and isinstance(owner.it, ModuleType):
        if owner.it in (torch, torch.nn.functional):
            return getattr(owner.it, name, None)
        if owner.it.__name__ in ("numpy", "math"):
            return of_numpy(torch, name) if owner.it.__name__ == "numpy" else of_math(name)
        own = vars(owner.it).get(name)
        return own if isinstance(own, FunctionType) else None
    if isinstance(node, ast.Name):
        held = names.get(name, NOWHERE)
        held = held.it if isinstance(held, Value) else held
        return PLAIN.get(name) if held is NOWHERE else held
    if owner is not None and type(owner.it) not in (torch.Tensor, torch.nn.Parameter):  # a loss that an object holds
        try:
            parts = vars(owner.it)
        except TypeError:
            return None
        held = parts.get(name, (parts.get("_modules") or {}).get(name))
        return held if isinstance(held, torch.nn.Module) else None
    return None


def criterion(torch: Any, module: Any, named: dict[str, Value]) -> tuple[Any, str, dict[str, Value]]:
    """Return the function of a loss of torch.nn, its name, and its arguments.

    Raises:
        Unknown: it is another module.
    """
    kind, functions = type(module), torch.nn.functional
    name = _CRITERIA.get(kind.__name__, "")
    if kind.__module__ != "torch.nn.modules.loss" or not name:
        raise Unknown
    settings = {key: Value(it) for key, it in vars(module).items() if key in ("reduction", "ignore_index", "beta")}
    return getattr(functions, name), name, named | settings


def items_of(name: str, owner: Value | None, values: list[Value]) -> Value:
    """Return the items of a dict, or of sequences side by side.

    Raises:
        Unknown: they are not known.
    """
    if name == "items" and owner is not None and type(owner.it) is dict and not values:
        return Value(tuple(owner.it.items()))
    known = owner is None and values and all(type(value.it) in (tuple, list) for value in values)
    if name == "items" or not known:
        raise Unknown
    sides = [value.it for value in values]
    return Value(tuple(zip(*sides, strict=False)) if name == "zip" else tuple(enumerate(sides[0])))


def length_of(torch: Any, value: Value) -> Value:
    """Return the length of a list, a loader or its data.

    Raises:
        Unknown: it is another object.
    """
    try:
        return Value(len(value.it) if is_plain(value.it) else length(torch, value.it))
    except (TypeError, ValueError):
        raise Unknown from None


def definition_of(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function; None if it is not found, or is that of a generator."""
    code = code_of(function)
    tree = source.parsed(code.co_filename)
    wanted = [
        node
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name
        and code.co_firstlineno <= node.lineno <= code.co_firstlineno + len(node.decorator_list)
    ]  # fmt: skip
    return wanted[0] if len(wanted) == 1 and not code.co_flags & 0x20 else None


def variables_of(function: FunctionType, given: list[Value], named: dict[str, Value]) -> dict[str, Any]:
    """Return the names that the body of a function can read, with the arguments of a call."""
    code = code_of(function)
    names: dict[str, Any] = dict(function.__globals__)
    for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[free] = cell.cell_contents
        except ValueError:
            names[free] = NOWHERE
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    names.update(dict.fromkeys(arguments, NOWHERE))
    names.update(zip(arguments[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True))
    names.update(function.__kwdefaults__ or {})
    names.update(zip(arguments, given, strict=False))
    names.update({key: value for key, value in named.items() if key in arguments})
    return names


def is_number(it: Any) -> bool:
    """Return True for a number of Python."""
    return type(it) in (int, float, bool)


def is_plain(it: Any) -> bool:
    """Return True for a value of a builtin class."""
    return type(it) in (int, float, bool, str, list, tuple, dict, range, slice)


def plain_of(torch: Any, value: Any) -> Any:
    """Return a value of numpy as a number or a tensor; a copy, since the memory of an array may be read-only."""
    kind = type(value).__name__
    if kind.startswith(("float", "int", "uint", "bool")) and hasattr(value, "item"):
        return value.item()
    if kind == "ndarray" and value.dtype.kind in "fiub" and 0 < value.size <= _MOST_OF_ARRAY:
        try:
            return torch.as_tensor(value.copy())
        except (TypeError, ValueError):  # a type that torch does not have
            return value
    return value
