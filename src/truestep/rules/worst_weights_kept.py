from __future__ import annotations

from collections.abc import Iterator

from truestep.events import EvaluationLossRead, Event, FigureRead, RunEnded, WeightsKept
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import results
from truestep.syntax import Program, Suspicion

_LEAST_BETTER = 3
"""Evaluations with better figures than that of the kept weights."""
_NEAR = 0.01
"""Relative difference from the figure of the kept weights that is none."""
_MOST = 4096


class WorstWeightsKept(Rule):
    """The weights with the worst loss or accuracy are kept as the best ones.

    What it does
    ------------
    Reads the condition around ``state_dict()`` if it compares a loss or an accuracy, by the name of the variable or by
    the loss functions that compute it, with the best one so far and replaces that, and the values of this variable
    after each evaluation. Reports a branch for larger losses, or for smaller accuracies, if at least three evaluations
    were better than that of the weights kept last.

    Why it matters
    --------------
    The comparison is turned round, often because a metric was replaced by a loss. Nothing fails: a file with the best
    weights is written and loaded again. It has those of the first epoch, or of the worst one. In the proof, the test
    accuracy is 0.52 instead of 0.72.

    Example
    -------
    ::

        best_loss = 0.0
        ...
        if val_loss > best_loss:
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")

    Fix
    ---
    Keep the weights with the lowest loss, and begin with the largest number::

        best_loss = float("inf")
        ...
        if val_loss < best_loss:
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")

    Known false alarms
    ------------------
    A program that looks for the weights with the largest loss on purpose. Not reported: other variables, such as
    scores, conditions with several comparisons, copies of whole models, and figures that are gone when the next
    training step begins.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "worst-weights-kept"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    confidence = Confidence.HIGH
    watches = (EvaluationLossRead, FigureRead, WeightsKept)
    needs = (WeightsKept,)
    asks = "the weights that are kept are the best ones"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return results.worst_weights_kept(program)

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, list[WeightsKept]] = {}
        self._read: dict[str, list[float]] = {}

    def unobserved(self, run: Progress) -> str:
        named = any(one.loss is not one.share for kept in self._kept.values() for one in kept)
        return super().unobserved(run) or ("" if named else "no figure with the name of a loss or an accuracy")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case WeightsKept():
                kept = self._kept.setdefault(event.name, [])
                if len(kept) < _MOST:
                    kept.append(event)
            case EvaluationLossRead() | FigureRead():
                read = self._read.setdefault(event.name, [])
                if len(read) < _MOST:
                    read.append(event.value)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for name, kept in self._kept.items():
            last = kept[-1]
            if last.loss is last.share or last.loss is not last.greater or len({one.site for one in kept}) > 1:
                continue
            sign, near = (-1 if last.loss else 1), _NEAR * abs(last.value)
            better = [value for value in self._read.get(name, []) if sign * (value - last.value) > near]
            if len(better) >= _LEAST_BETTER:
                self._found(last, better, len(kept), run)

    def _found(self, last: WeightsKept, better: list[float], times: int, run: Progress) -> None:
        word, best = ("lowest", min(better)) if last.loss else ("highest", max(better))
        self.report(
            last.site,
            f"the weights with the {'largest' if last.loss else 'smallest'} `{last.name}` are kept as the best ones",
            run=run,
            label=f"{last.value:.3g} of the weights kept last, and {best:.3g} at the {word}",
            related=() if last.taken is None else (Mark(last.taken, "takes the weights"),),
            help=f"keep the weights with the {word} `{last.name}`, and begin with the other end of its range",
            cost=f"{len(better)} evaluations were better than that of the weights kept last",
            unit="kept states",
        ).count = times
