"""Values that a data set stores, so that ranks can find out whether they hold the same data. No code of it is run."""

from __future__ import annotations

import hashlib
from typing import Any

from truestep.probes.context.values import has_values

_MOST = 64
_DEEPEST = 4
_LEAST = 8
"""Least number of values in a collection that identify it."""
_MOST_VISITS = 4000
_PLAIN = (str, bytes, int, float, bool, type(None))


def content(torch: Any, dataset: Any) -> str:
    """Return a digest of the stored values of a data set; empty if it stores no collection of plain values.

    Args:
        torch: the module.
        dataset: any object: its attributes are read, and those of data sets inside of it.
    """
    values = _Values(torch)
    return values.digest.hexdigest() if values.add(dataset, 0) else ""


class _Values:
    """A digest of values."""

    def __init__(self, torch: Any) -> None:
        self.digest = hashlib.blake2b(digest_size=8)
        self._torch = torch
        self._visits = 0

    def add(self, value: Any, depth: int) -> bool:
        """Add a value; return True if it is, or has, a collection of plain values."""
        self._visits += 1
        if isinstance(value, self._torch.Tensor) or (type(value).__module__ == "numpy" and hasattr(value, "dtype")):
            return self._add_array(value)
        if depth == _DEEPEST or self._visits > _MOST_VISITS:
            return False
        if type(value) in (list, tuple):
            return self._add_list(value, depth)
        attributes = vars(value) if hasattr(value, "__dict__") and not callable(value) else {}
        added = [self.add(attributes[name], depth + 1) for name in sorted(attributes)]
        return any(added)

    def _add_list(self, values: list[Any] | tuple[Any, ...], depth: int) -> bool:
        some = values[:: max(1, len(values) // _MOST)][:_MOST]
        plain = [one for one in some if _is_plain(one)]
        self.digest.update(repr((len(values), plain)).encode())
        inner = [self.add(one, depth + 1) for one in some if not _is_plain(one)]
        return (len(plain) == len(some) and len(values) >= _LEAST) or any(inner)

    def _add_array(self, array: Any) -> bool:
        """Add some elements of a tensor on the CPU, or of an array of numpy."""
        if isinstance(array, self._torch.Tensor):
            readable = array.is_cpu and has_values(array) and array.is_contiguous()
        else:
            readable = array.dtype.kind in "biufUS"
        if not readable or array.reshape(-1).shape[0] < _LEAST:
            return False
        flat = array.reshape(-1)
        some = flat[:: max(1, len(flat) // _MOST)][:_MOST]
        self.digest.update(repr((tuple(array.shape), some.tolist())).encode())
        return True


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(type(part) in _PLAIN for part in value)
    return type(value) in _PLAIN
