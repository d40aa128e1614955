"""The remedy for workers that restart in every epoch: keep them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change

_Attributes = list[tuple[str, Any, int]]
_DEPTH = 2
"""Levels of attributes to compare, such as the strength of a transform of a data set."""


class KeepWorkers(Change):
    """Loaders with workers keep them from one pass to the next, as with `persistent_workers=True`.

    They still restart if the script has changed an attribute of the data set since they got their copy of it, or if a
    pass begins before the previous one over the same loader has ended.
    """

    name = "keep-workers"
    remedies = ("workers-respawned",)

    def install(self, stack: ExitStack) -> None:
        begun: MutableMapping[Any, _Attributes] = weakref.WeakKeyDictionary()
        """Attributes of the data set as the workers have them, by loader with kept workers."""
        ended: MutableMapping[Any, None] = weakref.WeakKeyDictionary()
        """Exhausted iterators."""

        def __iter__(loader: Any) -> Any:
            if loader.num_workers == 0 or (loader.persistent_workers and loader not in begun):
                return iter_of_torch(loader)
            kept = loader._iterator
            attributes = list(_attributes(loader.dataset))
            if kept is not None and (kept not in ended or not _same(attributes, begun[loader])):
                if kept in ended:
                    _release(loader)
                else:
                    return loader._get_iterator()
            if loader._iterator is not None:
                self.applied += 1
                del ended[loader._iterator]
            begun[loader] = attributes
            loader.__dict__["persistent_workers"] = True
            try:
                return iter_of_torch(loader)
            finally:
                loader.__dict__["persistent_workers"] = False

        iter_of_torch = seams.loader.wrap_iter(stack, __iter__)
        seams.loader.watch(stack, ended=lambda iterator: ended.setdefault(iterator))


def _release(loader: Any) -> None:
    """Stop the workers of a loader."""
    loader._iterator._shutdown_workers()
    loader._iterator = None


def _attributes(thing: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any, int]]:
    """Yield name, object and version of the attributes of a data set, and of their attributes."""
    import torch

    for key, value in getattr(thing, "__dict__", {}).items():
        if isinstance(value, torch.Tensor):
            size = value._version
        else:
            size = len(value) if isinstance(value, list | dict | set) else 0
        yield f"{name}.{key}", value, size
        if depth < _DEPTH and not isinstance(value, type | ModuleType | torch.Tensor):
            yield from _attributes(value, f"{name}.{key}", depth + 1)


def _same(attributes: _Attributes, others: _Attributes) -> bool:
    """Return True if every attribute is the same object as before, or an equal number or text."""
    return len(attributes) == len(others) and all(
        one[0] == other[0]
        and one[2] == other[2]
        and (one[1] is other[1] or (isinstance(one[1], int | float | str | bool) and one[1] == other[1]))
        for one, other in zip(attributes, others, strict=True)
    )
