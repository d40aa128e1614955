"""`ActiveProbe`: runs the active checks, on copies, after a call of a trained model has returned.

An evaluation is checked first; a model without one is checked in training, with its copy in eval mode.

Seam: the end of an outermost module call, from the module probe; and the iterators of DataLoaders, since the shapes of
the latest batch show the dimension of the samples.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep import seams
from truestep.events import (
    ArgumentsCompared,
    CheckSkipped,
    Event,
    PaddingCompared,
    PlainStateCompared,
    PlainStateSaved,
    SamplesCompared,
    Site,
)
from truestep.probes.active import restored_states
from truestep.probes.active.battery import ALL, OF_FUNCTIONS, Batch, battery
from truestep.probes.active.data_sets.called_rows import CalledRows
from truestep.probes.active.data_sets.checks import DataSetChecks
from truestep.probes.active.data_sets.collated import Collated
from truestep.probes.active.data_sets.selections import Selections
from truestep.probes.active.derivatives import functions_of
from truestep.probes.active.grounds import Attempts, fit, hindrance
from truestep.probes.active.influence import draws
from truestep.probes.active.noise.kept import KeptNoise
from truestep.probes.active.noise.process import NoiseShares
from truestep.probes.active.noise.targets import NoiseTargets
from truestep.probes.active.result_gradients import ResultGradients
from truestep.probes.active.rows.columns import TargetColumns
from truestep.probes.active.rows.parts import Parts
from truestep.probes.active.sequences.counted import Counted
from truestep.probes.active.sequences.readings import Readings
from truestep.probes.active.sequences.states import follow_state
from truestep.probes.active.sequences.targets import TargetsRead
from truestep.probes.active.trial import Trial
from truestep.probes.active.unsaved import Unsaved
from truestep.probes.context.probe import Probe, sees
from truestep.probes.copies.call import Call, called
from truestep.probes.copies.objects import Refused, copy_of
from truestep.probes.evaluation.chosen import ChosenRows
from truestep.probes.evaluation.comparisons import Comparisons
from truestep.probes.forward.model import Model
from truestep.probes.forward.results import Use, use_of

_MOST_DATA = 64
_TRAINED = 3
"""Step from which a model without an evaluation is checked in training."""


class ActiveProbe(Probe):
    """Emits the results of the checks, and `CheckSkipped` for a check that was not possible."""

    def install(self, stack: ExitStack) -> None:
        from torch.utils.data._utils.collate import default_collate

        scene = self.scene
        self._collate = default_collate
        self._batch = Batch(scene)
        self._training: dict[int, int] = {}
        """Model to the step in which its training was checked."""
        self._attempts = Attempts()
        self._data = DataSetChecks(scene, self._aside, self._attempts)
        self._collated = Collated(scene, self._aside)
        self._targets = TargetsRead(scene, self._aside)
        self._columns = TargetColumns(scene, self._aside)
        self._noise = NoiseTargets(scene, self._aside)
        self._shares = NoiseShares(scene, self._aside)
        self._kept = KeptNoise(scene, self._aside)
        self._called = CalledRows(scene, self._aside, self._batch, self._data)
        self._rows, self._pairing, self._maps = self._called.rows, self._called.pairing, self._called.maps
        self._selections = Selections(scene, self._aside)
        self._readings = Readings(scene, self._aside)
        self._counted = Counted(scene, self._aside)
        self._chosen = ChosenRows(scene)
        self._comparisons = Comparisons(scene, self._aside, self._rows.compared, self._chosen)
        self._parts = Parts(scene)
        self._gradients = ResultGradients(scene, self._chosen)
        self._plain = Unsaved(scene)
        self._saves: set[tuple[int, tuple[str, ...], tuple[str, ...]]] = set()
        """Saves that were already emitted."""

        def _save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            result = original_save(obj, *args, **kwargs)
            if scene.active:
                self.saved(obj)
            return result

        def __next__(iterator: Any) -> Any:
            try:
                batch = original(iterator)
            except StopIteration:
                if scene.active and not scene.depth.fetching:
                    self.passed(sys._getframe())
                raise
            if scene.active and not scene.depth.fetching:
                self.drawn(iterator, batch)
            return batch

        original = seams.loader.wrap_next(stack, __next__)
        original_save = seams.saving.wrap(stack, "_save", _save)
        scene.checks = self
        stack.callback(setattr, scene, "checks", None)

    @sees
    def drawn(self, iterator: Any, batch: Any) -> None:
        """Record the shapes of a batch, with weak references to its tensors."""
        loader = self.scene.loader
        if loader is not None:
            self._data.drawn(loader, iterator)
        by_torch = type(batch) in (tuple, list) and getattr(iterator, "_collate_fn", None) is self._collate
        self._batch.drawn(loader, batch if by_torch else ())
        with contextlib.suppress(Refused):
            self._pairing.drawn(batch)
        with contextlib.suppress(Refused):
            self._maps.drawn(batch)
        if loader is not None:
            with contextlib.suppress(Refused):
                self._collated.drawn(loader, iterator, batch)

    @sees
    def passed(self, frame: FrameType) -> None:
        """Handle the end of a pass over a loader, at the frame that asked for a batch."""
        self._comparisons.passed(frame)

    @sees
    def met(self, module: Any, model: int) -> None:
        """Handle the first call of a model, before it runs."""
        self._plain.met(module, model)

    @sees
    def saved(self, obj: Any) -> None:
        """Handle a `torch.save`, after it has returned."""
        scene = self.scene
        for model, missing, held in self._plain.saved(obj):
            if (model, missing, held) not in self._saves and len(self._saves) < _MOST_DATA:
                self._saves.add((model, missing, held))
                scene.emit(PlainStateSaved(model=model, missing=missing, held=held, site=scene.site()))

    def returned(self, model: Model, site: Site | None, tracked: bool, frame: FrameType, result: Any) -> None:
        """Handle an outermost call of a model that has returned.

        Args:
            model: the model.
            site: line of the call.
            tracked: True if the result tracks gradients.
            frame: torch's frame of the call, with the arguments.
            result: its result.
        """
        scene = self.scene
        try:
            module = model.ref()
            if module is None:
                return
            if not scene.sampling.on:
                self._targets.forget()
            self._read_rows(module, model.number, site, frame, result, tracked=tracked)
            self._read_parts(module, model.number, site, frame, result)
            if not model.trainable:
                return
            if tracked:
                self._data.called(module, scene.loader)
                self._comparisons.trained(frame)
            how = (use_of(site) if site and tracked else Use()).how
            if not tracked or how in ("compared", "loss"):
                self._comparisons.returned(model.number, site, frame, result, tracked=tracked, averages=how == "loss")
            self._rows.forget()
            if tracked and scene.sampling.on:
                self._follow(module, model.number, site, frame, result)
                self._in_training(module, model.number, site, frame, result)
                if scene.sampling.step >= _TRAINED:
                    self._targets.returned(module, model.number, site, frame, result)
                    self._columns.returned(module, model.number, site, frame)
                    self._noise.returned(module, model.number, site, frame)
                    self._shares.returned(module, model.number, site, frame)
                    self._kept.returned(module, model.number, frame, result)
            elif not tracked and not module.training:
                self._in_evaluation(module, model.number, site, frame, result)
            elif not scene.torch.is_grad_enabled():
                self._without_gradients(module, model.number, site)
        except Exception:
            scene.fail()

    @sees
    def function_returned(
        self, module: Any, model: int, site: Site | None, frame: FrameType, call: Call, result: Any, *, tracked: bool
    ) -> None:
        """Handle a call of a function that is a model, which has returned.

        Args:
            module: the function as a module; None if that is not possible.
            model: its number.
            site: line of the call.
            frame: a frame of this package inside of the call.
            call: the arguments without its weights.
            result: its result.
            tracked: True if the result tracks gradients.
        """
        # Weights without a gradient are evaluated outside of no_grad(), too.
        with contextlib.suppress(Refused), self.scene.torch.set_grad_enabled(tracked):
            self._called.read(model, site, call, frame, result, tracked=tracked)
        if tracked:
            self._comparisons.trained(frame)
        how = (use_of(site) if site and tracked else Use()).how
        if not tracked or how in ("compared", "loss"):
            self._comparisons.returned(model, site, frame, result, tracked=tracked, averages=how == "loss")
        self._rows.forget()
        if module is None or not self.scene.sampling.step or self.scene.coast.on:
            return
        if not tracked and self._attempts.due("model", model):
            self._check_model(module, model, site, frame, result, evaluated=True, only=OF_FUNCTIONS)
        elif tracked and self.scene.sampling.on and self.scene.sampling.step >= _TRAINED:
            if self._training.get(model) != self.scene.sampling.step and self._attempts.due("training", model):
                self._training[model] = self.scene.sampling.step
                self._check_model(module, model, site, frame, result, only=OF_FUNCTIONS)
            self._targets.returned(module, model, site, frame, result)
            self._columns.returned(module, model, site, frame)
            self._noise.returned(module, model, site, frame)
            self._shares.returned(module, model, site, frame)
            self._kept.returned(module, model, frame, result)

    def function_draws(self, module: Any, frame: FrameType) -> bool:
        """Return True if random numbers change the result of a copy of a function; False if that is not known."""
        scene = self.scene
        try:
            with self._aside(), restored_states.kept(scene.torch):
                return draws(Trial(scene, copy_of(module, scene), called(module, frame))).differ
        except Refused:
            return False

    @sees
    def computed(
        self, kind: str, site: Site | None, input: Any, target: Any, *, whole: bool, ignored: int | None = None
    ) -> None:
        """Handle a loss of training at a sampled step.

        Args:
            kind: name of the loss.
            site: its line.
            input: its input.
            target: its targets.
            whole: False for a loss of each sample.
            ignored: the class that it leaves out; None for losses on other targets than classes.
        """
        self._chosen.computed(site)
        self._comparisons.learned(target, ignored)
        self._called.computed(site, sys._getframe(2), input, target)
        if self.scene.sampling.step < _TRAINED:
            return
        self._targets.computed(kind, site, sys._getframe(2), input, target, whole=whole, ignored=ignored)
        if whole:
            self._columns.computed(site, sys._getframe(2), target)
            self._noise.computed(site, input, target)
            self._kept.computed(kind, site, target)

    def lost(self, value: Any, target: Any, ignored: int, reduction: str) -> None:
        """Handle the result of a loss on classes without gradients."""
        self._comparisons.lost(value, target, ignored, reduction)

    @sees
    def _follow(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        """Follow the gradient of a result, at sampled steps."""
        if not self.scene.coast.on:
            self._gradients.returned(module, model, site, frame, result, self._batch.size())
            self._counted.returned(module, frame, result)

    @sees
    def passed_back(self, loss: Site | None) -> None:
        """Handle the end of a backward pass of a sampled step."""
        with self.scene.sampling.timed(None):
            self._gradients.differentiated(loss)

    @sees
    def differentiated(self, root: Any, site: Site | None) -> None:
        """Handle a backward pass at a sampled step, before it runs."""
        frame = self.scene.sites.own(1)
        with contextlib.suppress(Refused):
            self._pairing.differentiated(root, site, frame)
        with contextlib.suppress(Refused):
            self._selections.differentiated(site, frame)
        with contextlib.suppress(Refused):
            self._readings.differentiated(root, site, frame)
        with contextlib.suppress(Refused):
            self._counted.differentiated(root, site, frame)
        self._kept.differentiated(root, site)

    @sees
    def _read_rows(
        self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any, *, tracked: bool
    ) -> None:
        """Read the rows that a model was called on."""
        with contextlib.suppress(Refused):
            self._called.read(model, site, called(module, frame), frame, result, tracked=tracked)

    @sees
    def _read_parts(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        """Compare the arguments of a call with each other and with those of other calls, at sampled steps."""
        scene = self.scene
        if scene.sampling.on and not scene.coast.on:
            with contextlib.suppress(Refused):
                call, kind = called(module, frame), scene.torch.Tensor
                with self._aside():
                    given = tuple(value for value in (*call.args, *call.kwargs.values()) if type(value) is kind)
                    self._parts.called(model, site, frame, given, result)

    def last(self) -> Iterator[Event]:
        yield from self._called.last()
        yield from self._comparisons.last()
        yield from self._noise.last()
        yield from self._kept.last()

    def _in_training(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        step = self.scene.sampling.step
        if step >= _TRAINED and self._training.get(model) != step and self._attempts.due("training", model):
            self._training[model] = step
            self._check_model(module, model, site, frame, result)

    def _without_gradients(self, module: Any, model: int, site: Site | None) -> None:
        """Handle a call in train mode, which may be an evaluation all the same."""
        scene, loader = self.scene, self.scene.loader
        self._data.evaluated(module, loader)
        if loader is not None and scene.sampling.step and not scene.coast.on and not scene.coast.learning:
            self._data.check_overlap(loader, model, site)

    def _in_evaluation(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        scene, loader = self.scene, self.scene.loader
        self._data.evaluated(module, loader)
        if not scene.sampling.step or scene.coast.on or scene.coast.learning:
            return
        if self._attempts.due("model", model):
            self._check_model(module, model, site, frame, result, evaluated=True)
        if loader is not None:
            self._data.check_reads(loader, model, site)
            self._data.check_overlap(loader, model, site)
        if self._attempts.due("state", model):
            self._check_state(module, model, frame)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Context manager for a check, which the other probes do not observe.

        Raises:
            Refused: no check is possible now.
        """
        scene = self.scene
        depth = scene.depth
        outer, depth.fetching = depth.fetching, True
        try:
            with scene.aside(), scene.sampling.checks:
                hinders = hindrance(scene)
                if hinders:
                    raise Refused(hinders)
                yield
        finally:
            depth.fetching = outer

    # --- checks of a copy of a model ---------------------------------------------------------------------------

    def _check_model(
        self,
        module: Any,
        model: int,
        site: Site | None,
        frame: FrameType,
        result: Any,
        *,
        evaluated: bool = False,
        only: frozenset[str] = ALL,
    ) -> None:
        scene = self.scene
        self._attempts.begin("model" if evaluated else "training", model)
        events: list[Event] = []
        try:
            with self._aside():
                if evaluated:
                    fit(module)
                trial = Trial(scene, copy_of(module, scene), called(module, frame))
                with restored_states.kept(scene.torch):
                    if only is OF_FUNCTIONS and draws(trial).differ:
                        raise Refused("it draws random numbers")
                    functions = functions_of(result, scene.torch)
                    events = battery(trial, model, site, functions, self._batch, evaluated=evaluated, only=only)
        except Refused as refused:
            events = [CheckSkipped(check="samples", reason=f"the model was not checked: {refused}")]
        dead = any(isinstance(event, ArgumentsCompared) and event.dead for event in events)
        if any(isinstance(event, SamplesCompared) for event in events) and not dead:
            self._attempts.settle("training", model)
            if evaluated:
                self._attempts.settle("model", model)
        for event in events:
            if not isinstance(event, PaddingCompared) or event.state is None or not event.changes:
                scene.emit(event)
            elif not evaluated:
                follow_state(scene, event, result)

    # --- check: a state dict leaves out state ------------------------------------------------------------------

    def _check_state(self, module: Any, model: int, frame: FrameType) -> None:
        scene = self.scene
        if not (self._plain.is_due(model, scene.sampling.step) and self._plain.changed(model)):
            if self._attempts.open("state", model):
                scene.emit(PlainStateCompared(model=model))
            return
        self._attempts.begin("state", model)
        try:
            with self._aside():
                fit(module)
                call = called(module, frame)
                with restored_states.kept(scene.torch):
                    depends = self._plain.depends(model, module, call)
        except Refused as refused:
            scene.emit(CheckSkipped(check="state", reason=f"the state of the model was not checked: {refused}"))
            return
        if depends:
            self._attempts.settle("state", model)
        scene.emit(PlainStateCompared(model=model, depends=depends))
