"""Functions of numpy, math and scikit-learn that may be repeated: they write nothing and draw nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from truestep.probes.evaluation.values import Unknown, Value

_OF_NUMPY = {
    "argmax": "argmax", "argmin": "argmin", "mean": "mean", "sum": "sum", "round": "round", "abs": "abs",
    "sqrt": "sqrt", "square": "square", "diag": "diag", "trace": "trace", "exp": "exp", "log": "log",
    "nanmean": "nanmean", "nan_to_num": "nan_to_num", "maximum": "maximum", "minimum": "minimum",
    "concatenate": "cat", "stack": "stack", "vstack": "vstack", "hstack": "hstack",
    "array": "as_tensor", "asarray": "as_tensor",
}  # fmt: skip
"""To the functions of torch."""
_OF_MATH = frozenset({"exp", "exp2", "log", "log2", "log10", "pow", "sqrt"})
_OF_SKLEARN = frozenset({"precision_score", "recall_score", "f1_score", "jaccard_score"})
_SCALERS = {
    "StandardScaler": ("scale_", "mean_", False), "RobustScaler": ("scale_", "center_", False),
    "MinMaxScaler": ("scale_", "min_", True), "MaxAbsScaler": ("scale_", None, False),
}  # fmt: skip
"""Scalers of scikit-learn: factor, shift, and whether values are multiplied by the factor before they are shifted."""
_SWITCHES = ("with_mean", "with_std", "with_centering", "with_scaling")
_MOST = 1 << 17
"""Predictions that a score is computed of."""


def of_numpy(torch: Any, name: str) -> Any:
    """Return the function of torch for one of numpy; None if there is none."""
    return getattr(torch, _OF_NUMPY[name]) if name in _OF_NUMPY else None


def of_math(name: str) -> Any:
    """Return a function of numbers; None if it is not repeated."""
    return getattr(math, name) if name in _OF_MATH else None


def joined(torch: Any, value: Value) -> Value:
    """Return a list of numbers as a tensor, and one of arrays as one of tensors; other values as they are."""
    it = value.it
    if type(it) not in (list, tuple) or not it or value.made is not None:
        return value
    if all(type(one) in (int, float, bool) for one in it):
        return Value(torch.tensor(it, dtype=torch.float64 if any(type(one) is float for one in it) else None))
    if all(type(one).__name__ == "ndarray" and one.dtype.kind in "fiub" for one in it):
        return Value([torch.as_tensor(one.copy()) for one in it])
    return value


def scaling_of(torch: Any, scaler: Any, name: str) -> Callable[[Any], Any] | None:
    """Return the arithmetic of a method of a fitted scaler of scikit-learn, whose own code can warn; None for others.

    Args:
        torch: the module.
        scaler: the object.
        name: its method, of which ``transform`` and ``inverse_transform`` are known.
    """
    kind = type(scaler)
    if kind.__name__ not in _SCALERS or not kind.__module__.startswith("sklearn.preprocessing."):
        return None
    settings = vars(scaler)
    if name not in ("transform", "inverse_transform") or settings.get("clip"):
        return None
    if not all(settings.get(key, True) for key in _SWITCHES):
        return None
    factor, shift, multiplied = _SCALERS[kind.__name__]
    if any(settings.get(key) is None for key in (factor, shift) if key):
        return None
    scale = torch.as_tensor(settings[factor].copy())
    offset = torch.as_tensor(settings[shift].copy()) if shift else 0.0

    def scaled(it: Any) -> Any:
        if it.dim() != 2:  # scikit-learn raises an error
            raise Unknown
        if (name == "transform") is multiplied:
            return it * scale + offset
        return (it - offset) / scale

    return scaled


def scored(function: Any, name: str, given: list[Value], named: dict[str, Value]) -> Value | None:
    """Return the score that a function of scikit-learn computes of known classes; None if it is another function.

    Raises:
        Unknown: it raised an error, or there are too many predictions.
    """
    if name not in _OF_SKLEARN or not str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        return None
    values = [*given, *named.values()]
    if any(value.made is not None for value in values):
        return None
    if any(len(value.it) > _MOST for value in given if hasattr(value.it, "__len__")):
        raise Unknown
    settings = {"zero_division": 0} | {key: value.it for key, value in named.items()}  # without it, it can warn
    try:
        return Value(float(function(*(value.it for value in given), **settings)))
    except Exception:
        raise Unknown from None
