"""Classification of model calls: training calls, and phases of calls without gradients between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep.events import ModelCalled
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

    def called(self, call: ModelCalled) -> None:
        """Update the state with one call."""
        (self.off.discard if call.training else self.off.add)(call.model)
        if not call.training:
            self.evaluated_off.add(call.model)
        if call.grad:
            self._grad.setdefault(call.model, set()).update(() if call.loader is None else (call.loader,))
            if call.same_input and call.model in self.phases:
                self.phases[call.model].dismissed = True
            return
        trained = self.trained.get(call.model)
        self.evaluated |= trained is not None and bool(call.sensitive or call.frozen_sensitive)
        if trained is None:
            self.early.add(call.model)
        elif call.training and call.sensitive and call.loader not in trained.loaders:
            phase = self.phases.setdefault(call.model, Phase(call))
            phase.dismissed |= call.same_input or call.discarded or call.model in self.on_purpose
            phase.batches += call.loader is not None and phase.drawn != self.drawn
            phase.drawn = self.drawn

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
