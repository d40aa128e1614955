from __future__ import annotations

from dataclasses import dataclass

from truestep.events import Event, OptimizerStepped, OutputsCompared
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LOOKS = 2
"""Least number of sampled steps with an output that changed since the previous one, and a known layer."""
_LEAST_SPAN = 90
_LEAST_STEPS = 100
"""At the beginning rows may be equal for a while: a last layer of zeros, a warm-up."""


@dataclass(slots=True)
class _Stretch:
    """Consecutive sampled steps with equal outputs of a model."""

    first: int
    looks: int = 0


class OutputIgnoresInput(Rule):
    """A model in training returns the same output for every input.

    What it does
    ------------
    At sampled steps in training, compares the rows of a model's output, or of up to four outputs together, for inputs
    with different rows. Reports a model if its rows are equal up to rounding at every sampled step over at least 90
    steps, beyond step 100, while its output changes between these steps: it is trained, but learns a constant; or while
    a layer returns zeros only, in a model with different rows before. The finding requires and names a layer as the
    cause: a torch layer that turned different rows into equal ones, followed by a layer with weights, or a layer with
    weights that got only equal rows of 0, 1 and -1.

    Why it matters
    --------------
    Such a model guesses: it has learned the frequencies of the classes or the mean of the targets, and its loss stays
    there. Often all units of a ReLU died in a step that was too large, or a series of saturated layers removed the
    input in single precision. The model does not recover, because dead activations pass no gradient. In the proof, an
    lr a hundred times too large gives 22 % of held-out points right instead of 58 %.

    Example
    -------
    ::

        optimizer = torch.optim.Adam(model.parameters(), lr=1.0)    # the first steps kill every ReLU

    Fix
    ---
    Lower the lr, normalise the inputs, and use an initialisation and activations that preserve the input::

        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    Known false alarms
    ------------------
    A regression with a penalty so strong that its weights are zero on purpose. Not reported: outputs that do not change
    between steps, without a layer of zeros, or from the first step on (a value function before the first reward, a last
    layer of zeros), outputs that are all 0, 1 or -1 (choices), a saturated last activation (actions at their bounds),
    rows that become equal between layers (averages over a graph or a set, outputs that are parameters), layers in half
    precision, models with a single weight, results of which a part has no gradient or no row for each sample, and
    samples that become equal in a layer that is not from torch.

    References
    ----------
    - https://arxiv.org/abs/1903.06733
    - https://docs.pytorch.org/docs/stable/nn.init.html
    """

    id = "output-ignores-input"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    confidence = Confidence.MEDIUM
    watches = (OutputsCompared, OptimizerStepped)
    needs = (OutputsCompared,)
    explains = ("loss-at-chance", "loss-never-changes", "parameters-without-effect", "update-exceeds-weights")

    def __init__(self) -> None:
        super().__init__()
        self._equal: dict[int, _Stretch] = {}
        self._varied: set[int] = set()
        """Models with different outputs at an earlier sampled step."""

    def unobserved(self, run: Progress) -> str:
        few = f"fewer than {_LEAST_STEPS} optimizer steps"
        return super().unobserved(run) or (few if run.step < _LEAST_STEPS else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case OutputsCompared(equal=False, model=model):
                self._varied.add(model)
                self._equal.pop(model, None)
                self.withdraw(model)
            case OutputsCompared(model=model):
                stretch = self._equal.get(model)
                died = event.zero and model in self._varied
                if stretch is None or not (event.moved or died) or not event.kind:
                    self._equal[model] = _Stretch(event.steps)
                    return
                stretch.looks += 1
                enough = stretch.looks >= _LEAST_LOOKS and event.steps - stretch.first >= _LEAST_SPAN
                if enough and event.steps >= _LEAST_STEPS:
                    self._found(event, stretch, run)

    def _found(self, event: OutputsCompared, stretch: _Stretch, run: Progress) -> None:
        name = run.model_name(event.model)
        draft = self.report(
            event.site,
            f"`{name}` returns the same output for every input",
            run=run,
            label=f"{event.samples} different samples, one output",
            help="lower the lr, normalise the inputs, and initialise the layers so that they preserve the input",
            unit="sampled steps",
            key=event.model,
        )
        draft.cost = (
            f"from step {stretch.first} to step {event.steps} it learned a constant: its output rows were equal"
        )
        where = f"`{event.layer}` ({event.kind})" if event.layer else event.kind
        gives = "returns zero for every sample" if event.zero else "is the layer at which the samples become equal"
        draft.cost += f"; {where} {gives}"
        draft.first_step = stretch.first
        draft.count = stretch.looks
