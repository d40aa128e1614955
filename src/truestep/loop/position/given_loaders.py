"""The DataLoaders that `run.train` receives, and their names."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from truestep.loop.loading.given import GivenLoader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from truestep.loop.run.registry import Parts

_OUTSIDE = " outside of epochs"


class GivenLoaders:
    """The DataLoaders that `run.train` received: one part of the run for each, named by the order of first use.

    Order within an epoch: a resumed run starts in a later epoch, and its body may build DataLoaders again.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._names: dict[int, tuple[weakref.ref[DataLoader[Any]], str]] = {}
        self._count = 0

    def begin_epoch(self) -> None:
        """Restart the count, also for DataLoaders that were used before."""
        self._names.clear()
        self._count = 0

    def part(self, loader: DataLoader[Any], *, in_epoch: bool) -> GivenLoader:
        """Return the part for a DataLoader; the same DataLoader keeps its name within an epoch."""
        held, name = self._names.get(id(loader), (None, ""))
        if held is None or held() is not loader:  # an id is used again after its object is freed
            self._count += 1
            name = f"DataLoader {self._count}" + ("" if in_epoch else _OUTSIDE)
            self._names[id(loader)] = weakref.ref(loader), name
        known = self._parts.loaders.get(name)
        if not isinstance(known, GivenLoader):
            known = GivenLoader(loader, name)
            self._parts.add(self._parts.loaders, "loader", name, known)
        known.loader = loader
        return known

    def end(self, name: str, number: int) -> None:
        """End a pass; outside of epochs its DataLoader is removed, since no epoch will replace it."""
        part = self._parts.loaders.get(name)
        if not isinstance(part, GivenLoader):
            return
        part.end(number)
        if name.endswith(_OUTSIDE) and not part.under_way:
            self._parts.remove_loader(name)
