"""Units of values that are made from the result of a model: differences, their sizes, sums and means of these.

A figure of an evaluation is a sum over samples or a mean over them. The unit of a value follows from the operations
that made it, for any names and any style of a program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from truestep.probes.evaluation.values import LOSSES, Made, Value, legacy_reduction

REGRESSION = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_SAME = frozenset({
    "item", "float", "double", "half", "detach", "cpu", "numpy", "contiguous", "clone", "squeeze", "unsqueeze", "view",
    "reshape", "flatten", "ravel", "to", "type", "astype", "int", "long", "bool", "view_as", "type_as",
})  # fmt: skip
_SIZES = frozenset({"abs", "square"})
_SINGLE = ("mean", "sum", "root", "net", "spread")
_PERCENT = 100


def measured(name: str, values: list[Value], named: dict[str, Value], found: Value, rows: int, torch: Any) -> str:
    """Set the unit of a value that an operation has made, and return the mistake that it shows; "" without one.

    Args:
        name: the operation; of a binary operator "sub", "mul", "truediv", "add", "pow" or "and".
        values: its arguments.
        named: its keyword arguments.
        found: its result.
        rows: number of rows of the result of the model.
        torch: the module.
    """
    sources = [value for value in values if value.made is not None]
    if found.made is None or not sources:
        return ""
    made = sources[0].made
    unit, kind, pair, mistake = _after(name, values, named, found, rows, torch)
    known = bool(unit) and made is not None
    found.made = replace(found.made, unit=unit, kind=kind if known else "", pair=pair if known else None)
    return mistake


def _after(
    name: str, values: list[Value], named: dict[str, Value], found: Value, rows: int, torch: Any
) -> tuple[str, str, Any, str]:
    first = next(value for value in values if value.made is not None)
    made: Made = first.made  # type: ignore[assignment]
    unit, kind, pair = made.unit, made.kind, made.pair
    tensor, mistake = torch.Tensor, ""
    if name == "sub":
        unit, kind, pair = _difference(values, tensor)
    elif name in ("eq", "ne"):
        one, two = (value.it for value in values[:2])
        both = isinstance(one, tensor) and isinstance(two, tensor) and one.shape == two.shape and one.numel() > 1
        alone = sum(value.made is not None for value in values) == 1
        unit, kind, pair = ("size", "right", _sides(values)) if both and alone and name == "eq" else ("", "", None)
    elif name in LOSSES:
        unit, kind, pair = _loss(name, values, named)
    elif name in _SIZES or (name == "pow" and type(values[-1].it) in (int, float) and values[-1].it == 2):
        mistake = "cancelled" if unit == "net" else ""
        unit = {"difference": "size", "size": "size", "spread": "spread"}.get(unit, "")
    elif name == "sqrt":
        unit = {"mean": "root", "size": "size"}.get(unit, "")
    elif name in ("sum", "mean"):
        unit = _reduced(name, unit, found, tensor)
    elif name == "mul":
        unit = _times(unit, values, rows, tensor)
    elif name == "and":
        unit = unit if unit == "size" and kind == "right" else ""
    elif name == "truediv":
        unit, mistake = _divided(made, values, rows)
    elif name == "add":
        alike = all(value.made is not None and (value.made.unit, value.made.kind) == (unit, kind) for value in values)
        unit = unit if alike and unit in ("mean", "sum", "size") else ""
    elif name not in _SAME:
        unit = ""
    return unit, kind, pair, mistake


def _difference(values: list[Value], tensor: type) -> tuple[str, str, Any]:
    one, two = values[0].it, values[1].it
    if not isinstance(one, tensor):
        return "", "", None
    many = one.numel()  # type: ignore[attr-defined]
    if values[0].made is not None and values[1].made is not None:
        own = many > 1 and (not isinstance(two, tensor) or two.numel() == 1)  # type: ignore[attr-defined]
        plain = not values[0].made.unit and not values[1].made.unit
        return ("spread", "spread", None) if own and plain else ("", "", None)
    if many < 2 or not isinstance(two, tensor) or two.numel() != many:  # type: ignore[attr-defined]
        return "", "", None
    return "difference", "error", _sides(values)


def _sides(values: list[Value]) -> tuple[Any, Any]:
    """Return prediction and target."""
    one, two = values[0], values[1]
    return (one.it, two.it) if one.made is not None else (two.it, one.it)


def _loss(name: str, values: list[Value], named: dict[str, Value]) -> tuple[str, str, Any]:
    if len(values) < 2 or (values[0].made is None) == (values[1].made is None):
        return "", "", None
    reduction = named["reduction"].it if "reduction" in named else legacy_reduction(named) or "mean"
    unit = {"mean": "mean", "sum": "sum", "none": "size"}.get(reduction, "")
    return unit, "error" if name in REGRESSION else "loss", _sides(values)


def _reduced(name: str, unit: str, found: Value, tensor: type) -> str:
    single = not isinstance(found.it, tensor) or found.it.numel() == 1  # type: ignore[attr-defined]
    if unit == "difference":
        return "net" if single else ""
    if unit == "size":
        return name if single else "size"
    return unit if unit in _SINGLE else ""


def _times(unit: str, values: list[Value], rows: int, tensor: type) -> str:
    others = [value.it for value in values if value.made is None]
    if len(others) != 1:
        return ""
    other = others[0]
    if isinstance(other, tensor):
        return "size" if unit == "size" else ""
    if unit == "mean" and other == rows:
        return "sum"
    scale = isinstance(other, float) or other in (_PERCENT, -1)
    return unit if scale or unit in ("difference", "size") else ""


def _divided(made: Made, values: list[Value], rows: int) -> tuple[str, str]:
    over = values[1]
    if values[0].made is not made:
        return "", ""
    if over.made is not None:
        wrong = made.unit in ("sum", "mean") and made.kind == "error" and over.made.unit == "spread"
        return "", "spread" if wrong else ""
    if type(over.it) not in (int, float) or made.unit not in _SINGLE:
        return made.unit if made.unit in ("difference", "size") and type(over.it) in (int, float) else "", ""
    elements = made.pair[0].numel() if made.pair is not None else rows
    if made.unit == "sum" and over.it in (rows, elements):
        return "mean", ""
    return (made.unit if over.it == _PERCENT else ""), ""
