"""Inspection and profiles of a run: `truestep.debugging` for its models, loops and folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truestep.errors import BadPart

if TYPE_CHECKING:
    from torch import nn

    from truestep.debugging import Inspection, Profile
    from truestep.loop.optim.updates import Updates
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.run.loops import Loops


class Inspecting:
    """Inspects the steps of a run.

    Args:
        models: of the run, by name.
        updates: of its optimizers, by name.
        loops: of the run; a profile wraps their iterators.
        progress: of the run.
        folder: of the run, for traces; None to write no trace.
    """

    def __init__(
        self,
        models: dict[str, nn.Module],
        updates: Mapping[str, Updates],
        loops: Loops,
        progress: RunProgress,
        folder: Path | None,
    ) -> None:
        self._models, self._updates = models, updates
        self._loops, self._progress, self._folder = loops, progress, folder

    def inspect(self, *models: nn.Module, when: bool, updates: bool) -> AbstractContextManager[Inspection]:
        """Return a context that inspects the step inside; see `Run.inspect`."""
        from truestep.debugging import inspect

        chosen = models or tuple(self._models.values())
        if not chosen:
            raise BadPart(
                "the run has no model",
                expected="expected a model given to run.model(), or to this call",
                remedy="write run.inspect(model)",
            )
        inspecting = inspect(*chosen, when=when, updates=updates, names=self._models)
        return self._in_scale(inspecting) if when else inspecting

    @contextmanager
    def _in_scale(self, inspecting: AbstractContextManager[Inspection]) -> Iterator[Inspection]:
        """Record the factors by which fp16 multiplies the losses of the step."""
        scalers = [updates.scaler for updates in self._updates.values()]
        scales = tuple(scaler.get_scale() for scaler in scalers if scaler is not None)
        with inspecting as seen:
            seen.scales = scales
            yield seen

    @contextmanager
    def profile(self, steps: int, *models: nn.Module, skip: int, **options: Any) -> Iterator[Profile]:
        """Measure the time of the loops inside; see `Run.profile`."""
        from truestep.debugging import profile

        trace = None
        if self._folder is not None:
            trace = self._folder / "profile" / f"trace-step-{self._progress.global_step:06d}.json.gz"
        models = models or tuple(self._models.values())
        with profile(*models, steps=steps, skip=skip, trace=trace, names=self._models, **options) as found:
            before = self._loops.around
            self._loops.around = found.loop
            try:
                yield found
            finally:
                self._loops.around = before
