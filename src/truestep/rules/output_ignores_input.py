from __future__ import annotations

from dataclasses import dataclass

from truestep.events import Event, OptimizerStepped, OutputsCompared
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LOOKS = 2
"""Looks at which the output had moved since the look before, and a layer was known."""
_LEAST_SPAN = 90
_LEAST_STEPS = 100
"""At the beginning rows may be equal for a while: a last layer of zeros, a warm-up."""


@dataclass(slots=True)
class _Stretch:
    """Looks in a row at which all outputs of a model were equal."""

    first: int
    looks: int = 0


class OutputIgnoresInput(Rule):
    """A model that is being trained gives the same output whatever its input.

    What it does
    ------------
    Compares the rows of what a model returns in training, at sampled steps, where the rows of its input differ. Reports
    models whose rows are equal but for rounding at every look over 90 steps or more, beyond step 100, while what they
    return does change from look to look: they are trained, and learn a constant. Then the layers are compared as well:
    it takes a layer of torch that got rows that differ and returned equal ones, with a layer with weights after it, or
    one with weights that got nothing but equal rows of 0, 1 and -1. That layer is named.

    Why it matters
    --------------
    Such a model guesses: it has learnt how frequent the classes are, or the mean of the targets, and its loss stays
    there. Often all units of a ReLU died in a step that was too large, or so many saturated layers follow each other
    that nothing of the input is left in single precision. It does not recover: where the activations have no gradient,
    nothing moves. In the proof a lr a hundred times too large leaves 22 % of held-out points right instead of 58 %.

    Example
    -------
    ::

        optimizer = torch.optim.Adam(model.parameters(), lr=1.0)    # the first steps kill every ReLU

    Fix
    ---
    Lower the lr, normalise the inputs, and use an initialisation and activations that let the input through::

        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    Known false alarms
    ------------------
    A regression under a penalty so strong that its weights are zero on purpose. Not reported: outputs that have not
    moved either (a value function before the first reward, a last layer of zeros), outputs that are all 0, 1 or -1
    (choices), a saturated last activation (actions at their bounds), rows made equal between layers (averages over a
    graph or a set, outputs that are parameters), layers in half precision, models with a single weight or with several
    tensors as a result, and samples that become equal in a layer that is not torch's own.

    References
    ----------
    - https://arxiv.org/abs/1903.06733
    - https://docs.pytorch.org/docs/stable/nn.init.html
    """

    id = "output-ignores-input"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    watches = (OutputsCompared, OptimizerStepped)
    needs = (OutputsCompared,)

    def __init__(self) -> None:
        super().__init__()
        self._equal: dict[int, _Stretch] = {}
        self._steps = 0

    def unobserved(self, run: Progress) -> str:
        few = f"fewer than {_LEAST_STEPS} optimizer steps"
        return super().unobserved(run) or (few if run.step < _LEAST_STEPS else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case OutputsCompared(equal=False, model=model):
                self._equal.pop(model, None)
                self.withdraw(model)
            case OutputsCompared(model=model):
                stretch = self._equal.get(model)
                if stretch is None or not event.moved or not event.kind:
                    self._equal[model] = _Stretch(event.steps)
                    return
                stretch.looks += 1
                enough = stretch.looks >= _LEAST_LOOKS and event.steps - stretch.first >= _LEAST_SPAN
                if enough and event.steps >= _LEAST_STEPS:
                    self._found(event, stretch, run)
            case _:
                pass

    def _found(self, event: OutputsCompared, stretch: _Stretch, run: Progress) -> None:
        name = run.model_name(event.model)
        draft = self.report(
            event.site,
            f"`{name}` gives the same output for every input",
            run=run,
            label=f"{event.samples} different samples, one output",
            help="lower the lr, normalise the inputs, and initialise the layers so that the input gets through",
            unit="sampled steps",
            key=event.model,
        )
        draft.cost = f"from step {stretch.first} to step {event.steps} it learnt a constant, by the rows of its outputs"
        where = f"`{event.layer}` ({event.kind})" if event.layer else event.kind
        gives = "gives zero for every sample" if event.zero else "is where the samples become equal"
        draft.cost += f"; {where} {gives}"
        draft.first_step = stretch.first
        draft.count = stretch.looks
