from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.events import Event, LossRead, OptimizerBuilt, ResultPushed, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._formulas import hinges_in_training
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models.signs import exchanged_hinges, minimised_likelihoods, negated_losses
from truestep.syntax import Program, Suspicion

_LEAST_READS = 5
_LEAST_STEPS = 10
_LEAST_FALLS = 0.75
"""Least share of the changes of a loss that are falls, if it falls without a bound."""
_LEAST_MIXED = 0.75
"""Least share of the reads with errors over values of both signs."""
_UNBOUND = 1000
"""Fall of a loss below zero, as a multiple of its first value, from which nothing bounds it."""
_LEAST_PUSHES, _MOST_PUSHES = 3, 64
_ALIKE = 2.5
"""Largest ratio of the gradients of two losses with one target: those of a squared error show its distance."""
_CLEAR = 0.01
"""Least size of a gradient next to the largest one: a saturated score has none, and its direction is chance."""
_MOVED = ("trained", "moved by hand")
_NAMES = {
    "NllLoss": "the cross entropy",
    "MseLoss": "the squared error",
    "L1Loss": "the absolute error",
    "SmoothL1Loss": "the smooth L1 loss",
    "HuberLoss": "the Huber loss",
    "BinaryCrossEntropy": "the binary cross entropy",
    "BinaryCrossEntropyWithLogits": "the binary cross entropy",
}
_TURNED = {
    "weights": (
        "the size of the weights is subtracted from the loss: it is made larger",
        "add the penalty to the loss",
    ),
    "entropy": (
        "the entropy of the policy is added to the loss: it is made smaller",
        "subtract the entropy, times its coefficient, from the loss of the policy",
    ),
    "ratio": (
        "of the ratio of probabilities and the clipped one, the more favourable is taken: nothing is clipped",
        "take the minimum of both objectives, and differentiate its negative; or the maximum of both losses",
    ),
    "quotient": (
        "errors are divided by values of both signs: those over a value below zero are made larger",
        "divide by the size of the value, `error / y.abs().clamp_min(1e-3)`",
    ),
}
"""Message and help for a term with the wrong sign."""


@dataclass(slots=True)
class _Line:
    """The losses of one line with a backward pass."""

    first: LossRead
    last: LossRead
    reads: int = 0
    maximised: int = 0
    """Reads of the negative of a loss function."""
    changes: int = 0
    falls: int = 0
    """Number of values that differ from the one before, and of those that are less."""
    turned: int = 0
    """Reads with the same term of the wrong sign as the first one."""


@dataclass(slots=True)
class _Pair:
    """The losses on the scores that one model gives to the results of another one, with their steps."""

    own: list[tuple[int, ResultPushed]] = field(default_factory=list)
    """Of results without their graph: they train the model that scores."""
    other: list[tuple[int, ResultPushed]] = field(default_factory=list)
    """Of results with their graph: they train the model that made them."""

    def is_one_way(self, beside: dict[int, set[bool]]) -> bool:
        """Return True if both losses move the scores in one direction, and the first those of other samples back.

        Args:
            beside: step to the directions of the scores of other samples.
        """
        pushes = [push for _, push in (*self.own, *self.other)]
        if min(len(self.own), len(self.other)) < _LEAST_PUSHES or len({push.up for push in pushes}) > 1:
            return False
        up, largest = pushes[0].up, max(push.size for _, push in self.own)
        own_steps = [step for step, push in self.own if push.size >= _CLEAR * largest]  # else the scores are saturated
        if up is None or any(beside.get(step, {not up}) != {not up} for step in own_steps):
            return False
        back = sum(step in beside for step in own_steps)
        alone = all(step not in beside for step, _ in self.other)
        own, other = (sum(push.size for _, push in some) / len(some) for some in (self.own, self.other))
        return alone and 2 * back > len(own_steps) and own <= _ALIKE * other <= _ALIKE**2 * own


class LossMaximised(Rule):
    """A loss or a penalty is made larger: the optimizer follows its negative, or a value that falls without a bound.

    What it does
    ------------
    Follows the values that backward passes start from, and reads on the tape of sampled steps if such a value is a
    multiple of a loss function with a value of zero or more, or of an error by hand such as ``(out - y) ** 2``, and the
    sign of the factor; ``maximize=True`` of an optimizer changes it. Reports a run with one line of backward passes, if
    the factor was negative at each of them, at the end of the run. Also reports a loss that falls to a thousand times
    its first value below zero, and losses with a term of the wrong sign at each read: squares, absolute values or norms
    of weights that are subtracted; the entropy of a policy that is added, next to its log-probabilities times rewards;
    of the ratio of PPO and the clipped one, the minimum of two losses, or the maximum of two objectives; and errors
    that are divided by one value each, such as the target in a relative error, of which a tenth or more is below zero.

    Also follows models that score the results of another one with one number for each sample. Reports two models that
    are trained in turns if both losses always move these scores in the same direction, while the scores of other
    samples are moved back: the labels of one loss are exchanged, and the models do not oppose each other. If the other
    samples are the results of that model in another order, nothing is reported: such models can cooperate.

    The source shows hinges of pairs, ``relu(positive - negative + margin)``, that are those of distances but get
    similarities, or the other way round. A run reports them in the files with a step. ``truestep lint`` also reports
    log-probabilities, and the negative of a loss function, from which a backward pass starts.

    Why it matters
    --------------
    The loss in the log falls, as it should, and the model learns the opposite. With a likelihood, the sign is easily
    lost: ``log_prob`` is to be made larger, and its negative is the loss. In the proof the error is 26 instead of 0.13.

    Example
    -------
    ::

        loss = Normal(mean, scale).log_prob(y).mean()       # the log-likelihood is made smaller
        loss.backward()

    Fix
    ---
    Differentiate the value that should fall::

        loss = -Normal(mean, scale).log_prob(y).mean()
        loss.backward()

    Known false alarms
    ------------------
    A network that is trained from random weights to make the error of another one large, in a program that trains
    nothing else; a policy that is to be certain. Not reported: several lines of backward passes (adversarial training),
    other sums of terms, runs with loaded or frozen weights (attacks, unlearning), inputs and other tensors outside of
    modules, factors that change their sign, and hinges of values with other names or of unknown functions; an entropy
    that is to be small without a policy gradient, that is compared with a number, or beside one that is to be large.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    id = "loss-maximised"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (LossRead, OptimizerBuilt, ResultPushed)
    needs = (LossRead, steps(_LEAST_STEPS), FINISHED)
    leads_to = ("nan-or-inf", "update-exceeds-weights", "output-ignores-input", "loss-never-changes")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from exchanged_hinges(program)
        yield from minimised_likelihoods(program)
        yield from negated_losses(program)

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[Site | None, _Line] = {}
        self._maximize: set[bool] = set()
        self._pairs: dict[tuple[int, int], _Pair] = defaultdict(_Pair)
        """Model, and the one before it, to the losses on the scores."""
        self._beside: dict[int, dict[int, set[bool]]] = defaultdict(dict)
        """Model to the steps and directions of its scores of other samples."""

    def unobserved(self, run: Progress) -> str:
        shown = any(line.first.function for line in self._lines.values()) or self._drafts
        return super().unobserved(run) or ("" if shown else "no loss that is a multiple of one loss function")

    def suspected(self) -> bool:
        return super().suspected() or any(line.maximised == line.reads > 0 for line in self._lines.values())

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ResultPushed):
            self._push(event, run.step)
        else:
            self._add(event, 1)

    def _push(self, event: ResultPushed, step: int) -> None:
        """Enter a loss on scores."""
        if not event.scored:
            if event.up is not None and len(self._beside[event.model]) < _MOST_PUSHES:
                self._beside[event.model].setdefault(step, set()).add(event.up)
            return
        pair = self._pairs[event.model, event.scored]
        pushes = pair.other if event.tracked else pair.own
        if len(pushes) < _MOST_PUSHES:
            pushes.append((step, event))

    def again(self, event: Event, times: int) -> None:
        self._add(event, times)

    def _add(self, event: Event, times: int) -> None:
        match event:
            case OptimizerBuilt():
                self._maximize.add(event.maximizes)
            case LossRead():
                line = self._lines.setdefault(event.site, _Line(event, event))
                negative = event.negative != (True in self._maximize)
                line.reads += times
                line.maximised += times * bool(event.function and negative)
                line.changes += event.value != line.last.value
                line.falls += event.value < line.last.value
                line.turned += times * bool(event.turned and event.turned == line.first.turned)
                line.last = event

    def ended(self, event: RunEnded, run: Progress) -> None:
        opposed = event.how == "finished" and True not in self._maximize  # else a direction is that of the loss alone
        for (model, scored), pair in self._pairs.items() if opposed else ():
            both = all(
                not run.weights.moved.isdisjoint(run.models[one].parameters) if one in run.models else False
                for one in (model, scored)
            )
            if both and pair.is_one_way(self._beside[model]):
                self._one_way(model, scored, pair, run)
        if event.how != "finished" or run.step < _LEAST_STEPS or len(self._maximize) > 1:
            return
        if True not in self._maximize:
            self._hinges(run)
        for line in self._lines.values() if True not in self._maximize else ():
            alone = len(self._lines) == 1 or line.first.turned != "weights"  # else those of an opponent
            enough = _LEAST_MIXED if line.first.turned == "quotient" else 1  # a small batch can have values of one sign
            if line.turned >= enough * line.reads and line.reads >= _LEAST_READS and line.first.turned and alone:
                self._turned(line, run)
        fates = _MOVED if run.optimizers else (*_MOVED, "unread")  # updates by hand, which no optimizer reads
        trained = [p for model in run.models.values() for p in model.parameters if run.weights.fate(p) in fates]
        if (
            run.weights.frozen
            or not run.weights.loaded.keys().isdisjoint(trained)
            or not any(len(run.parameters[p].shape) > 1 for p in trained if p in run.parameters)
        ):
            return
        for line in self._lines.values():
            if line.reads < _LEAST_READS:
                continue
            first, last = line.first.value, line.last.value
            if line.maximised == line.reads and len(self._lines) == 1:
                self._found(line, f"the negative of {_NAMES[line.first.function]} is differentiated", run)
            falls = line.falls >= _LEAST_FALLS * line.changes > 0 and not line.first.function
            if falls and last < -_UNBOUND * max(1.0, abs(first)):
                self._found(line, f"the loss falls without a bound, from {first:.3g} to {last:.3g}", run)

    def _one_way(self, model: int, scored: int, pair: _Pair, run: Progress) -> None:
        """Report two models that are trained to move the scores of one's results in the same direction."""
        (_, own), (_, other) = pair.own[0], pair.other[0]
        judge, maker = run.model_name(model), run.model_name(scored)
        way = "larger" if own.up else "smaller"
        draft = self.report(
            other.loss,
            f"`{judge}` and `{maker}` do not oppose each other: both make the scores of the results of `{maker}` {way}",
            run=run,
            label=f"trains `{maker}` to make them {way}",
            related=(Mark(own.loss, f"trains `{judge}` to do the same"),) if own.loss is not None else (),
            cost=f"in {len(pair.own)} and {len(pair.other)} passes that were read, each score was moved this way",
            help=f"give the results of `{maker}` opposite labels in the two losses",
            unit="losses read",
            key=(model, scored),
        )
        draft.count = draft.total = len(pair.own) + len(pair.other)
        draft.first_step = pair.own[0][0]

    def _hinges(self, run: Progress) -> None:
        """Report hinges that push positive pairs apart."""
        for place, found in hinges_in_training(site for _, site, _ in run.steps.tally if site is not None):
            self.report(
                place,
                found.message,
                run=run,
                label=found.label,
                cost="the training moves the pairs the wrong way",
                help=found.help,
                unit="formulas",
            )

    def _found(self, line: _Line, message: str, run: Progress) -> None:
        built = next((one for one in run.optimizers.values() if True in self._maximize), None)
        draft = self.report(
            line.first.site,
            f"{message}: it is made larger" if line.first.function else message,
            run=run,
            label="each step makes the error larger",
            related=(Mark(built.site, "`maximize=True`"),) if built is not None and built.site is not None else (),
            cost=f"the loss went from {line.first.value:.3g} to {line.last.value:.3g}",
            help="differentiate the loss, and not its negative; that of a log-likelihood is its negative",
            unit="losses read",
        )
        draft.count, draft.total, draft.first_step = line.reads, line.reads, 0

    def _turned(self, line: _Line, run: Progress) -> None:
        message, help = _TURNED[line.first.turned]
        draft = self.report(
            line.first.site,
            message,
            run=run,
            label="a term of this loss has the wrong sign",
            help=help,
            cost=f"the loss went from {line.first.value:.3g} to {line.last.value:.3g}",
            unit="losses read",
        )
        draft.count, draft.total, draft.first_step = line.reads, line.reads, 0
