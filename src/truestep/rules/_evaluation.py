"""Classification of model calls: training calls, and phases of calls without gradients between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep.accounts.calls import measures
from truestep.events import ModelCalled, Site
from truestep.rules._rule import Progress

_SERVED = 10
"""Least number of steps that a fixed model serves."""


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
    asked: bool = False
    """Whether the program set train mode for them, after the latest training of the model."""


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
        self.asked: set[int] = set()
        """Models whose train mode was set since they were last trained."""
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
            phase = self.phases.get(call.model)
            if phase is not None and phase.asked and phase.first.site == call.site:
                phase.dismissed = True  # one evaluation in each mode, for comparison
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
        phase = self.phases.setdefault(call.model, Phase(call, asked=call.model in self.asked))
        phase.batches += call.loader is not None and phase.drawn != self.drawn
        phase.drawn = self.drawn
        return phase

    def mode_set(self, model: int, *, training: bool) -> None:
        """Update the state with a new mode of a model."""
        if not training:
            self.off.add(model)
            return
        self.asked.add(model)
        if model in self.off:
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
            self.asked.discard(model)
        self._grad.clear()


class Fixed:
    """Follows models that serve the steps of others: called in train mode without a graph, and not trained meanwhile.

    Calls of one input several times (samples), and those with results that the caller drops, do not count.
    """

    def __init__(self) -> None:
        self._begun: dict[int, tuple[ModelCalled, int, int]] = {}
        """Model to its first such call, the step before it, and the step before the latest one."""
        self._over: list[tuple[ModelCalled, int, int]] = []
        """The same, before a call in eval mode."""

    def called(self, call: ModelCalled, step: int) -> None:
        """Update the state with one call."""
        if call.tracked or not call.training or call.same_input or call.discarded:
            ended = self._begun.pop(call.model, None)
            if ended is not None and not call.tracked and not call.training:
                self._over.append(ended)
        elif call.sensitive and not call.frozen_sensitive and not measures(call):
            first, begun, _ = self._begun.get(call.model, (call, step, step))
            self._begun[call.model] = first, begun, step

    def stepped(self, optimizer: int, run: Progress) -> None:
        """Forget the models that an optimizer trains."""
        for model in [model for model in self._begun if optimizer in _holders(model, run)]:
            del self._begun[model]

    def serving(self, run: Progress) -> list[tuple[ModelCalled, int]]:
        """Return the first call and the number of steps, of the models that have served many steps with fixed weights.

        A model outside of all optimizers with other values than at first is an average of another one; without a look
        at its values since its first call, it may be one.
        """
        found = []
        for call, begun, latest in (*self._over, *self._begun.values()):
            met = run.models.get(call.model)
            average = met is not None and not (
                _holders(call.model, run) or run.weights.moved.isdisjoint(met.parameters)
            )
            if latest - begun >= _SERVED and run.weights.looked > begun and not average:
                found.append((call, latest - begun))
        return found


def _holders(model: int, run: Progress) -> set[int]:
    """Return the optimizers that hold parameters of a model."""
    met = run.models.get(model)
    return set().union(*(run.held_by.get(p, set()) for p in met.parameters)) if met is not None else set()
