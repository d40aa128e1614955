"""Look inside a run by hand: one step, activations, and where the time goes.

The methods are those of `truestep.debugging`, for the models, the loops and the folder of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

from truestep.errors import BadPart

if TYPE_CHECKING:
    from truestep.debugging import Features, Inspection, Profile
    from truestep.debugging.feature_hooks import Patch
    from truestep.loop.checkpoint.run_folder import RunFolder
    from truestep.loop.run.loops import Loops
    from truestep.loop.run.registry import Parts


class Looking:
    """What a run shows of itself."""

    _parts: Parts
    _loops: Loops
    _folder: RunFolder | None

    def inspect(
        self, *models: nn.Module, when: bool = True, updates: bool = True
    ) -> AbstractContextManager[Inspection]:
        """Look at the step inside: shapes, values and gradients by layer, which parameters the loss reaches, first NaN.

        The step is the run's own, and the same as without: see `truestep.debugging.inspect`.

        Args:
            *models: to look at; all that belong to the run where none is given.
            when: False looks at nothing: `with run.inspect(model, when=run.global_step == 100) as seen:`.
            updates: measure how far parameters move; needs a copy of them in the memory of the CPU.

        Raises:
            BadPart: no model is given, and none belongs to the run.
        """
        from truestep.debugging import inspect

        chosen = models or tuple(self._parts.models.values())
        if not chosen:
            raise BadPart(
                "the run has no model",
                expected="a model given to run.model(), or to this call",
                remedy="write run.inspect(model)",
            )
        looking = inspect(*chosen, when=when, updates=updates, names=self._parts.models)
        return self._in_scale(looking) if when else looking

    @contextmanager
    def _in_scale(self, looking: AbstractContextManager[Inspection]) -> Iterator[Inspection]:
        """Note what the losses of the step are multiplied with in fp16."""
        scalers = [updates.scaler for updates in self._parts.updates.values()]
        scales = tuple(scaler.get_scale() for scaler in scalers if scaler is not None)
        with looking as seen:
            seen.scales = scales
            yield seen

    def features(
        self,
        model: nn.Module,
        names: Sequence[str] = (),
        *,
        patch: Mapping[str, Patch] | None = None,
        detach: bool = True,
        every_call: bool = False,
    ) -> AbstractContextManager[Features]:
        """Keep what modules return while the context is open, and put something else in its place: patching.

        Args:
            model: any model that is not compiled.
            names: of modules, as `model.named_modules()` gives them.
            patch: by name, what is returned instead: a tensor, or a function from the output to another one.
            detach: False keeps the graph, so that a loss on features reaches the model.
            every_call: keep what every call returned, in a list, and not the last one only.

        Raises:
            UnknownModule: no module has that name, or it is inside torch.compile.
            BadPatch: what does not fit.
        """
        from truestep.debugging import features

        return features(model, names, patch=patch, detach=detach, every_call=every_call)

    @contextmanager
    def profile(self, steps: int = 10, *models: nn.Module, skip: int = 3, **options: Any) -> Iterator[Profile]:
        """Measure where the time of the loops inside goes: by phase, module and operation.

        A trace for chrome://tracing and ui.perfetto.dev is written into the folder `profile` of the run's, if it has
        one, named after the step that the run is at. What the run does between two steps (a checkpoint, the log) counts
        to the data.

        Args:
            steps: bodies of the run's loops to measure, at least 1.
            *models: told apart module by module; all that belong to the run where none is given.
            skip: bodies that go before: the first ones compile, allocate and fill caches.
            **options: of `torch.profiler.profile`, such as record_shapes, with_stack and profile_memory.

        Raises:
            BadSettings: a number of steps that means nothing.
        """
        from truestep.debugging import profile

        trace = None
        if self._folder is not None:
            trace = self._folder.path / "profile" / f"trace-step-{self._loops.global_step:06d}.json.gz"
        models = models or tuple(self._parts.models.values())
        with profile(*models, steps=steps, skip=skip, trace=trace, names=self._parts.models, **options) as found:
            before = self._loops.around
            self._loops.around = found.loop
            try:
                yield found
            finally:
                self._loops.around = before
