"""Base class of speed-ups that change arguments of torch's DataLoader."""

from __future__ import annotations

import functools
import inspect
from contextlib import ExitStack
from typing import Any, ClassVar

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.seams.patch import patch


class LoaderArguments(Speedup):
    """Changes arguments of loaders that the script leaves open."""

    phases: ClassVar[tuple[str, ...]] = ("data",)
    stage = Stage.LOADER

    def install(self, stack: ExitStack) -> None:
        from torch.utils.data import DataLoader

        begin = DataLoader.__init__
        signature = inspect.signature(begin)

        @functools.wraps(begin)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(loader, *args, **kwargs)
            except TypeError:
                begin(loader, *args, **kwargs)
                return
            given = bound.arguments
            others = self.others(given)
            if others:
                self.applied += 1
                given.update(others)
            begin(*bound.args, **bound.kwargs)

        patch(stack, DataLoader, "__init__", __init__)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the changed arguments by name; {} to leave a loader as it is."""
        raise NotImplementedError


def is_of_toolkit(dataset: Any) -> bool:
    """Return True for the loader inside the toolkit's loader, which has the arguments of `run.loader`."""
    from truestep.loop.loading import feed

    return type(dataset).__module__ == feed.__name__
