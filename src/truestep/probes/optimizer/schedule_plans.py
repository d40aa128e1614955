"""The learning rates that a schedule was asked for, computed without a step of it.

The formula of each class of torch is called on a bare object with the values of the schedule, and with copies of
the parameter groups. Functions of the user are called only if they compute with numbers and nothing else.
"""

from __future__ import annotations

import dis
import functools
import math
from bisect import bisect_right
from itertools import accumulate, chain, repeat
from types import CellType, CodeType, FunctionType, SimpleNamespace
from typing import Any

from truestep.seams.code.functions import code_of

_LINEAR = 100
"""Positions in equal distances up to the end of a schedule."""
_STAIRS = 40
"""Steps of a staircase with values at both ends."""
_FARTHEST = 1_000_000
_FACTORS = ("ConstantLR", "ExponentialLR", "LinearLR", "MultiStepLR", "PolynomialLR", "StepLR")
_CLOSED = (*_FACTORS, "CosineAnnealingLR")
_ARITHMETIC = frozenset((
    "abs", "bool", "ceil", "cos", "cosh", "e", "exp", "expm1", "float", "floor", "int", "log", "log10", "log1p",
    "log2", "math", "max", "min", "np", "numpy", "pi", "pow", "round", "sin", "sqrt", "tanh",
))  # fmt: skip
_EMPTY = CellType()
_NOT_COMPUTED = (ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError)
"""Errors past the end of OneCycleLR, and of functions and settings that do not compute."""

Plan = tuple[tuple[int, float], ...]
"""Pairs of a number of schedule steps and the learning rate after them."""


def planned(scheduler: Any, horizon: int | None) -> Plan:
    """Return the learning rates of the first parameter group; empty if they are unknown.

    Args:
        scheduler: the schedule, before its first step.
        horizon: the number of steps that it is configured for; None if it has no end.
    """
    found: list[tuple[int, float]] = []
    try:
        for position in _positions(scheduler, horizon):
            rate = _rate(scheduler, position)
            if rate.__class__ not in (float, int) or not math.isfinite(rate):
                return ()
            found.append((position, float(f"{rate:.6g}")))
    except _NOT_COMPUTED:
        pass
    return tuple(found)


def _positions(scheduler: Any, horizon: int | None) -> list[int]:
    """Return the positions to compute: dense up to the end, at both ends of each stair, and sparse behind."""
    if horizon is None or horizon < 1:
        dense = set(range(10))
        far = accumulate(chain((10.0,), repeat(1.1)), lambda place, factor: place * factor)
    else:
        dense = {horizon * place // _LINEAR for place in range(2 * _LINEAR + 1)}
        far = accumulate(chain((2.0 * horizon,), repeat(1.2)), lambda place, factor: place * factor)
    for stair in _stairs(scheduler):
        dense |= {stair - 1, stair}
    for place in far:
        if place > max(_FARTHEST, horizon or 0):
            break
        dense.add(int(place))
    return sorted(position for position in dense if position >= 0)


def _stairs(scheduler: Any) -> list[int]:
    kind = type(scheduler).__name__
    if kind == "StepLR":
        return [int(scheduler.step_size) * place for place in range(1, _STAIRS + 1)]
    if kind == "MultiStepLR":
        return sorted(map(int, scheduler.milestones))[:_STAIRS]
    if kind == "ConstantLR":
        return [int(scheduler.total_iters)]
    if kind == "SequentialLR":
        starts = [0, *map(int, scheduler._milestones)]
        parts = zip(starts, scheduler._schedulers, strict=False)  # a script can append to the list that it gave
        inner = [start + stair for start, part in parts if part is not scheduler for stair in _stairs(part)]
        return [*starts[1:], *inner][: 2 * _STAIRS]
    return []


def _rate(scheduler: Any, position: int) -> Any:
    """Return the learning rate at a position."""
    cls = type(scheduler)
    kind = cls.__name__
    if cls.__module__ != "torch.optim.lr_scheduler":
        raise TypeError(kind)
    if kind == "SequentialLR":
        place = bisect_right(scheduler._milestones, position)
        start = scheduler._milestones[place - 1] if place else 0
        return _rate(scheduler._schedulers[place], position - start)
    if kind == "ChainedScheduler":
        rate = 1.0
        for number, part in enumerate(scheduler._schedulers):
            if type(part).__name__ not in (_FACTORS if number else _CLOSED):
                raise TypeError(kind)
            own = _rate(part, position)
            rate = rate * own / part.base_lrs[0] if number else own
        return rate
    if kind == "LambdaLR":
        function = scheduler.lr_lambdas[0]
        if not computes_only(function):
            raise TypeError(kind)
        return scheduler.base_lrs[0] * function(position)
    twin = _twin(scheduler, position)
    if kind in _CLOSED:
        return twin._get_closed_form_lr()[0]
    if kind == "OneCycleLR":
        return twin.get_lr()[0]
    raise TypeError(kind)


def _twin(scheduler: Any, position: int) -> Any:
    """Return an object of the same class at another position, with copies of the parameter groups."""
    twin: Any = object.__new__(type(scheduler))
    twin.__dict__.update(vars(scheduler))
    groups = [{key: value for key, value in group.items() if key != "params"} for group in _groups(scheduler)]
    twin.optimizer = SimpleNamespace(param_groups=groups)
    twin.last_epoch = position
    twin._get_lr_called_within_step = True
    return twin


def _groups(scheduler: Any) -> Any:
    return scheduler.optimizer.param_groups


def computes_only(function: Any) -> bool:
    """Return True if a function of the user reads numbers, computes with them, and does nothing else.

    >>> total, seen = 100, []
    >>> computes_only(lambda step: max(0.0, 1 - step / total)), computes_only(lambda step: seen.append(step))
    (True, False)
    """
    if isinstance(function, functools.partial):
        values = [*function.args, *function.keywords.values()]
        return all(map(_is_number, values)) and computes_only(function.func)
    if not isinstance(function, FunctionType) or code_of(function).co_flags & 0x2A0:  # generators and coroutines
        return False
    code = code_of(function)
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY]
    values = [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names = [name for name in code.co_names if name not in _ARITHMETIC]
    if not all(map(_is_number, [*values, *(function.__globals__.get(name) for name in names)])):
        return False
    replaced = [function.__globals__.get(name) for name in code.co_names if name in _ARITHMETIC]
    if any(isinstance(value, FunctionType) for value in replaced) or any(
        isinstance(one, CodeType) for one in code.co_consts
    ):
        return False
    steps = {instruction.opname for instruction in dis.get_instructions(code)}
    return not any(one.startswith(("STORE_", "DELETE_", "IMPORT_", "JUMP_BACKWARD")) for one in steps - {"STORE_FAST"})


def _is_number(value: Any) -> bool:
    return value.__class__ in (int, float, bool)
