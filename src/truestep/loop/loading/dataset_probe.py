"""Light copies of data sets, which share large objects, and comparison of samples."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from truestep.loop.rng.seed import numpy

MOST_OBJECTS = 10_000
LONG = 256


def light_copy(dataset: Any) -> Any | None:
    """Return a deep copy of a data set that shares its tensors, arrays and the elements of long lists.

    Returns:
        The copy; None if copying fails, or if the data set has more than 10,000 other objects.
    """
    memo: dict[int, Any] = {}
    met: set[int] = set()
    waiting = [dataset]
    while waiting:
        value = waiting.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        if len(met) > MOST_OBJECTS:
            return None
        if isinstance(value, torch.Tensor) or (numpy is not None and isinstance(value, numpy.ndarray)):
            memo[id(value)] = value
        elif isinstance(value, list | dict | set | tuple | frozenset):
            if len(value) > LONG:
                memo[id(value)] = copy.copy(value)
            else:
                waiting.extend(value.values() if isinstance(value, dict) else value)
        elif not isinstance(value, type):
            waiting.extend(getattr(value, "__dict__", {}).values())
    try:
        return copy.deepcopy(dataset, memo)
    except Exception:
        return None


def same(one: Any, other: Any) -> bool:
    """Return True if two samples are equal: tensors, arrays, numbers, text and containers; others are not compared."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return one.layout is not torch.strided or torch.equal(_bits(one), _bits(other))
    if numpy is not None and isinstance(one, numpy.ndarray):
        return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, str | bytes | int):
        return bool(one == other)
    if callable(getattr(one, "tobytes", None)):  # a Pillow image, a numpy scalar
        return bool(one.tobytes() == other.tobytes())
    return True


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
