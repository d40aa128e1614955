from __future__ import annotations

from collections import defaultdict

from truestep.events import AverageMeasured, Event, ModelMet, OptimizerStepped
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST = 2
"""Updates that were measured."""
_ROUNDING = 1e-4
_NEARLY_ALL = (0.9, 0.9999)
_SAME = 0.01


class AverageWithWrongShares(Rule):
    """The update of an average takes shares that do not add up to one, or nearly all of the trained model.

    What it does
    ------------
    Measures, between two sampled steps in a row, how a model outside optimizers was made of its earlier values and
    those of a trained model with the same shapes. Reports two or more updates

    - with shares that do not sum to one, as ``0.99 * average + 0.99 * weight``: the average grows or shrinks with each
      update;
    - with the same share of the trained model, between 0.9 and 0.9999: decay and ``1 - decay`` are exchanged. So are
      they if the share grows to such values with every update, as a decay that warms up does.

    Why it matters
    --------------
    Shares above one let an average grow to 100 times the size of the weights: in the proof, its loss is 1800 instead of
    0.5. Shares below one shrink it to zero. An average that takes 99 % of the trained model in each update is that
    model: it does not smooth its noise, and a target network does not hold its targets still.

    Example
    -------
    ::

        for average, weight in zip(ema.parameters(), model.parameters()):
            average.mul_(decay).add_(weight, alpha=decay)           # 1 - decay is meant

    Fix
    ---
    Use ``lerp_``, which has one share::

            average.lerp_(weight, 1 - decay)

    Known false alarms
    ------------------
    None known. Not reported: averages of several updates with other shares (running means, decays that warm up), exact
    copies, and updates that mix other values too.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    - https://docs.pytorch.org/docs/stable/generated/torch.lerp.html
    """

    id = "average-with-wrong-shares"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (AverageMeasured,)
    needs = (ModelMet, OptimizerStepped, AverageMeasured)

    def __init__(self) -> None:
        super().__init__()
        self._measured: dict[tuple[int, int], list[AverageMeasured]] = defaultdict(list)

    def suspected(self) -> bool:
        return super().suspected() or any(_is_off(one) for found in self._measured.values() for one in found)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, AverageMeasured):
            return
        measured = self._measured[event.model, event.source]
        measured.append(event)
        off, swapped = [one for one in measured if _is_off(one)], _exchanged(measured)
        name, source = run.model_name(event.model), run.model_name(event.source)
        if len(off) >= _LEAST:
            message = f"the shares of the average `{name}` sum to {off[-1].total:g}"
            label = f"takes {off[-1].take:.3g} of `{source}` and {off[-1].total - off[-1].take:.3g} of `{name}`"
            self._found(event, message, label, Confidence.HIGH, len(off), run)
        elif swapped:
            message = f"each update replaces nearly all of the average `{name}`"
            label = f"takes {event.take:.3g} of `{source}`, and keeps {event.total - event.take:.3g} of `{name}`"
            self._found(event, message, label, Confidence.MEDIUM, len(measured), run)
        else:
            self.withdraw((event.model, event.source))

    def _found(
        self, event: AverageMeasured, message: str, label: str, confidence: Confidence, count: int, run: Progress
    ) -> None:
        model = run.models.get(event.model)
        called = model.site if model is not None else None
        draft = self.report(
            event.site or called,
            message,
            run=run,
            label=label,
            related=(Mark(called, "the average is called here"),) if called is not None and event.site else (),
            help="use `average.lerp_(weight, 1 - decay)`",
            confidence=confidence,
            unit="measured updates",
            key=(event.model, event.source),
        )
        draft.count, draft.cost = count, "measured on some values before and after single updates"


def _is_off(one: AverageMeasured) -> bool:
    return abs(one.total - 1) > _ROUNDING


def _exchanged(measured: list[AverageMeasured]) -> bool:
    """Return True if all updates take the same, very large share, or each a larger one, up to very large ones.

    A decay that warms up takes smaller shares with every update.
    """
    takes = [one.take for one in measured]
    large = [take for take in takes if _NEARLY_ALL[0] < take < _NEARLY_ALL[1]]
    if len(large) < _LEAST:
        return False
    grows = len(takes) >= _LEAST + len(large) and takes[-len(large) :] == large and takes == sorted(set(takes))
    return grows or (len(large) == len(takes) and max(takes) - min(takes) < _SAME)
