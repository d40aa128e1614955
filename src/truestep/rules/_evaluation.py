"""Classification of model calls: training calls, and phases of calls without gradients between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep.events import ModelCalled, Site
from truestep.rules._rule import Progress


@dataclass(slots=True)
class Phase:
    """Calls of one model without gradients in train mode, with no backward pass and no step between them."""

    first: ModelCalled
    batches: int = 0
    """Number of batches from loaders that the model is not trained on."""
    drawn: int = -1
    dismissed: bool = False
    """Whether there is evidence that these calls are not an evaluation."""
    measured: bool = False
    """Whether they measure the model: one call is enough."""


def measures(call: ModelCalled) -> bool:
    """Return True if a call measures a model: its result is compared with targets, or its loss is only read."""
    if call.use == "compared":
        return call.only_read or not call.grad
    return call.use == "loss" and call.only_read


@dataclass(slots=True)
class ModelTraining:
    """State of the training of one model."""

    loaders: set[int] = field(default_factory=set)
    backwards: int = 0
    shared: bool = False
    """Whether other models with parameters took part in the same backward pass."""


class Calls:
    """Sorts calls into training calls and phases without gradients."""

    def __init__(self) -> None:
        self.phases: dict[int, Phase] = {}
        self.trained: dict[int, ModelTraining] = {}
        self.early: set[int] = set()
        """Models called without gradients before they were trained: rollouts, pseudo-labels, generators."""
        self.off: set[int] = set()
        """Models in eval mode."""
        self.evaluated_off: set[int] = set()
        """Models that were called in eval mode."""
        self.on_purpose: set[int] = set()
        """Models that were switched from eval mode to train mode since they were last trained."""
        self.drawn = 0
        self.evaluated = False
        self._grad: dict[int, set[int]] = {}
        self._latest: Site | None = None
        """Line of the latest call without gradients."""

    def called(self, call: ModelCalled) -> None:
        """Update the state with one call."""
        (self.off.discard if call.training else self.off.add)(call.model)
        if not call.training:
            self.evaluated_off.add(call.model)
        if measures(call):
            self._measured(call)
        elif call.grad:
            self._grad.setdefault(call.model, set()).update(() if call.loader is None else (call.loader,))
            if call.same_input and call.model in self.phases:
                self.phases[call.model].dismissed = True
        else:
            self._without_gradients(call)

    def _measured(self, call: ModelCalled) -> None:
        """Update the state with a call that measures a model: an evaluation, also of an average or a fixed model."""
        self.evaluated |= bool(self.trained) and bool(call.sensitive or call.frozen_sensitive)
        if self.trained and call.training and call.sensitive:
            other = call.site != self._latest
            sampled = call.same_input and not (other if call.model in self.phases else call.use == "compared")
            phase = self._row(call)
            phase.dismissed |= sampled or call.model in self.on_purpose
            phase.measured = True
        self._latest = call.site

    def _without_gradients(self, call: ModelCalled) -> None:
        trained = self.trained.get(call.model)
        self.evaluated |= trained is not None and bool(call.sensitive or call.frozen_sensitive)
        if trained is None:
            self.early.add(call.model)
        elif call.training and call.sensitive and call.loader not in trained.loaders:
            phase = self._row(call)
            phase.dismissed |= call.same_input or call.discarded or call.model in self.on_purpose
        self._latest = call.site

    def _row(self, call: ModelCalled) -> Phase:
        """Return the phase that a call belongs to."""
        phase = self.phases.setdefault(call.model, Phase(call))
        phase.batches += call.loader is not None and phase.drawn != self.drawn
        phase.drawn = self.drawn
        return phase

    def mode_set(self, model: int, *, training: bool) -> None:
        """Update the state with a new mode of a model."""
        if not training:
            self.off.add(model)
        elif model in self.off:
            self.off.discard(model)
            self.on_purpose.add(model)

    def backward(self, run: Progress) -> None:
        """Record the models that a backward pass trained."""
        together = [m for m in self._grad if m not in run.models or run.models[m].parameters]
        for model, loaders in self._grad.items():
            trained = self.trained.setdefault(model, ModelTraining())
            trained.loaders |= loaders
            trained.backwards += 1
            trained.shared |= len(together) > 1
            self.on_purpose.discard(model)
        self._grad.clear()
