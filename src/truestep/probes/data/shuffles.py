"""Shuffles of tensors and arrays in place. Seams: ``random.shuffle`` and ``numpy.random.shuffle``.

Both exchange elements with ``x[i], x[j] = x[j], x[i]``. A row of a tensor or of an array is a view, and not a copy: the
first assignment overwrites one of the two, and the second one copies it back. NumPy exchanges rows of arrays
in another way, which loses nothing.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.events import Shuffled, Site
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.seams.patch import patch

_MOST_CALLS = 20
"""Calls of a line that are compared."""
_MOST_LINES = 64
_MOST_ROWS, _MOST_VALUES = 100_000, 1 << 26
_LEAST_ROWS = 2
_VIEWS = 2
"""Dimensions of an array from which on a row is a view."""


class ShuffleProbe(Probe):
    """Emits `Shuffled`."""

    def install(self, stack: ExitStack) -> None:
        self._calls: dict[int, int] = {}
        """Line to the number of its calls with a tensor or an array."""
        plain, main = random.shuffle, sys.modules.get("__main__")
        wrapper = self._wrap(stack, random, "random.shuffle", views=True)
        if getattr(main, "shuffle", None) is plain:  # imported by name, before torch
            patch(stack, main, "shuffle", wrapper)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self._wrap(stack, numpy.random, "numpy.random.shuffle", views=False)

    def _wrap(self, stack: ExitStack, owner: Any, name: str, *, views: bool) -> Callable[..., Any]:
        scene, looks_like = self.scene, self._kind

        @functools.wraps(owner.shuffle)
        def shuffle(x: Any, *args: Any, **kwargs: Any) -> Any:
            kind = looks_like(x, views=views) if scene.active and not scene.depth.fetching else ""
            before = self.rows(x) if kind else None
            result = original(x, *args, **kwargs)
            if before is not None:
                self.compare(x, before, name, kind)
            return result

        shuffle.__module__, shuffle.__qualname__ = owner.__name__, "shuffle"  # by which it is pickled
        original: Callable[..., Any] = patch(stack, owner, "shuffle", shuffle)
        return shuffle

    def _kind(self, x: Any, *, views: bool) -> str:
        """Return "tensor" or "array" for values with rows that are views; an empty string for anything else."""
        kind = type(x)
        if kind is self.scene.torch.Tensor:
            return "tensor" if x.dim() and _LEAST_ROWS <= x.shape[0] <= _MOST_ROWS and has_values(x) else ""
        if kind.__module__ != "numpy" or kind.__name__ != "ndarray" or not views or not x.size or x.dtype.hasobject:
            return ""
        is_view = x.ndim >= _VIEWS or (x.ndim == 1 and x.dtype.names is not None)  # as are records
        return "array" if is_view and _LEAST_ROWS <= x.shape[0] <= _MOST_ROWS else ""

    @sees
    def rows(self, x: Any) -> int | None:
        """Return the number of rows that differ before a shuffle; None if the values are not to be compared."""
        site = self.scene.site()
        calls = self._calls.get(id(site), 0)
        if calls >= _MOST_CALLS or (not calls and len(self._calls) >= _MOST_LINES):
            return None
        self._calls[id(site)] = calls + 1
        return _different(self.scene.torch, x)

    @sees
    def compare(self, x: Any, before: int, name: str, kind: str) -> None:
        """Emit the numbers of rows that differ before and after a shuffle."""
        site: Site | None = self.scene.site()
        after = _different(self.scene.torch, x)
        if after is not None:
            self.scene.tell(Shuffled, site=site, by=name, kind=kind, rows=len(x), before=before, after=after)


def _different(torch: Any, x: Any) -> int | None:
    """Return the number of rows that differ; None for values that are too many."""
    if type(x) is torch.Tensor:
        if x.numel() > _MOST_VALUES or "numpy" not in sys.modules:
            return None
        flat = x.detach().cpu().resolve_conj().resolve_neg().reshape(len(x), -1)
        x = flat.contiguous().view(torch.uint8).numpy()
    return len({row.tobytes() for row in x.reshape(len(x), -1)}) if x.size <= _MOST_VALUES else None
