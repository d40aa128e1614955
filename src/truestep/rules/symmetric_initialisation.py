from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, ModelMet, ParametersUnchanged, RowsEqual, TapeRead
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import layers
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 10
_LEAST_LOOKS = 2
_LEAST_ZERO_STEPS = 20
_LEAST_CONSTANT = 2
_LEAST_ZERO_WEIGHTS = 2
"""A single weight of zeros is a common initialisation and gets gradients; two in a row do not."""


class SymmetricInitialisation(Rule):
    """A layer starts with equal rows and keeps them equal, so all its units compute the same function.

    What it does
    ------------
    Checks weights of two or more dimensions at the start of training and again at sampled steps. Reports weights with
    rows (units, output channels) that are all equal at the start and still equal after training steps, models with
    several layers of zeros that stay zero although the loss reaches them, and models with half or more of their
    weights, two at least, at one value everywhere when the training starts.

    Why it matters
    --------------
    Equal units followed by equal weights get equal gradients, so they stay equal: a layer of 64 units works like one
    unit. In the proof constants instead of random numbers cost 17 points of accuracy. If two consecutive layers are
    zero, neither ever gets a gradient, and only the last bias learns.

    Example
    -------
    ::

        for layer in (model.hidden, model.output):
            nn.init.constant_(layer.weight, 0.1)        # nn.init.zeros_ has the same effect

    Fix
    ---
    Start with random weights, the default of torch's layers; only biases start at zero::

        for layer in (model.hidden, model.output):
            nn.init.kaiming_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    Known false alarms
    ------------------
    None known. One constant layer is healthy if its neighbours are random (a last layer of zeros, LoRA, zero
    convolutions, gates): its rows differ after the first step, and it is not reported. Also not reported: weights that
    only decay, that the loss does not reach, or that have a single row. Constants that dropout, or the
    gates of an LSTM, make different have medium confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/nn.init.html
    - https://www.deeplearningbook.org/contents/optimization.html
    """

    id = "symmetric-initialisation"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (RowsEqual, TapeRead)
    needs = (ParametersUnchanged,)
    explains = ("loss-at-chance", "output-ignores-input", "parameters-without-effect")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return layers.symmetric_initialisation(program)

    def __init__(self) -> None:
        super().__init__()
        self._reached = set[int]()
        self._looks: dict[int, int] = {}
        """Weight to the number of sampled steps at which it was trained and its rows were still equal."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case TapeRead():
                self._reached.update(event.reached)
            case RowsEqual():
                self._looks = {p: self._looks.get(p, 0) + 1 for p in event.moved if p in self._reached}
                self._judge(event, run)

    def _judge(self, event: RowsEqual, run: Progress) -> None:
        claimed = set[int]()
        for model in run.models.values():
            mine = {p for p in model.parameters if p not in claimed}
            equal = tuple(p for p in event.moved if p in mine and self._looks.get(p, 0) >= _LEAST_LOOKS)
            zero = tuple(p for p in event.zero if p in mine and p in self._reached and p in run.held_by)
            constant = tuple(p for p in event.constant if p in mine and p in run.held_by)
            claimed.update(equal, zero, constant)
            if equal and event.steps >= _LEAST_STEPS:
                self._equal(model, equal, event.steps, run)
            elif len(zero) >= _LEAST_ZERO_WEIGHTS and event.steps >= _LEAST_ZERO_STEPS and _all(model, zero, run):
                self._zero(model, zero, event.steps, run)
            elif len(constant) >= _LEAST_CONSTANT and event.steps >= _LEAST_STEPS and _half(model, constant, run):
                self._constant(model, constant, run)
            else:
                self.withdraw(model.model)

    def _equal(self, model: ModelMet, weights: tuple[int, ...], steps: int, run: Progress) -> None:
        draft = self.report(
            model.site,
            f"the rows of {_count(weights)} of `{run.model_name(model.model)}` started equal and are still equal",
            run=run,
            label=f"equal rows in {run.parameter_names(weights)}",
            help="initialise the weights with random numbers, `nn.init.kaiming_uniform_` or torch's own default",
            key=model.model,
        )
        shape = run.parameters[weights[0]].shape if weights[0] in run.parameters else ()
        draft.cost = f"after {steps} steps the {shape[0]} units of the first weight work like one" if shape else ""
        draft.count = draft.total = steps

    def _constant(self, model: ModelMet, weights: tuple[int, ...], run: Progress) -> None:
        draft = self.report(
            model.site,
            f"{_count(weights)} of `{run.model_name(model.model)}` started with one value everywhere",
            run=run,
            label=f"one value: {run.parameter_names(weights)}",
            help="initialise the weights with random numbers, `nn.init.kaiming_uniform_` or torch's own default",
            confidence=Confidence.MEDIUM,
            key=model.model,
        )
        draft.cost = "their units begin as one unit, and only dropout or rounding makes them different"
        draft.first_step, draft.count, draft.total = 0, 1, None

    def _zero(self, model: ModelMet, weights: tuple[int, ...], steps: int, run: Progress) -> None:
        draft = self.report(
            model.site,
            f"all {_count(weights)} of `{run.model_name(model.model)}` started at zero and are still zero",
            run=run,
            label=f"zero: {run.parameter_names(weights)}",
            help="initialise the weights with random numbers, `nn.init.kaiming_uniform_` or torch's own default",
            confidence=Confidence.MEDIUM,
            key=model.model,
        )
        draft.cost = f"after {steps} steps they have not moved, although the loss reaches them"
        draft.count = draft.total = steps


def _half(model: ModelMet, weights: tuple[int, ...], run: Progress) -> bool:
    """Return True if these are at least half of the trainable weights of a model."""
    met = [run.parameters[p] for p in model.parameters if p in run.parameters]
    return 2 * len(weights) >= sum(p.trainable and len(p.shape) > 1 for p in met)


def _all(model: ModelMet, weights: tuple[int, ...], run: Progress) -> bool:
    """Return True if these are all trainable weights of a model."""
    met = [run.parameters[p] for p in model.parameters if p in run.parameters]
    return {p.parameter for p in met if p.trainable and len(p.shape) > 1} <= set(weights)


def _count(weights: tuple[int, ...]) -> str:
    return "1 weight" if len(weights) == 1 else f"{len(weights)} weights"
