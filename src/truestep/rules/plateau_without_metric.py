from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_KIND = "ReduceLROnPlateau"
_LEAST_PER_STEP = 20
_LEAST_PER_PASS = 3
"""Least number of scheduler steps, once per optimizer step and once per epoch."""
_LEAST_COUNTED = 4
_FALLING = frozenset({"loss", "losses", "err", "error", "mse", "rmse", "mae", "nll", "perplexity", "ppl"})
_RISING = frozenset({
    "acc", "accuracy", "f1", "auc", "auroc", "auprc", "iou", "miou", "dice", "precision", "recall", "bleu", "mcc",
    "kappa", "r2", "ndcg", "mrr", "psnr", "ssim",
})  # fmt: skip
"""Words in the names of metrics that get better downwards and upwards."""
_EITHER = frozenset({"l1", "l2", "gap", "distance", "diff", "kl"})
"""Words beside which a rising metric can be one that falls; by themselves they are to fall or to rise."""
_SHORT = frozenset({"ap", "map"})
"""Names of average precisions, as the last word of a variable: `map` is also a function, and a map of depths."""


@dataclass(slots=True)
class _Tally:
    """Counts of the steps of one schedule at one line, by the kind of value."""

    site: Site | None
    first_step: int
    steps: int = 0
    """All steps of the schedule."""
    per_step: int = 0
    """Steps with the training loss of one batch, one for each optimizer step."""
    per_pass: int = 0
    """Steps with the training loss of one batch, after several optimizer steps."""
    counted: int = 0
    """Steps with whole numbers in a row."""
    falling: bool = False
    """Whether the latest metric was far below the first, after values that nearly all fell."""
    name: str = ""
    """The expression that is passed."""

    def worse(self, mode: str, *, ended: bool) -> str:
        """Return the words for a metric that gets better in the other direction than that of the schedule.

        Its name shows this, and in the end also its values.
        """
        found = re.split(r"[\W_]+", self.name.lower())
        words = {*found, *(word.rstrip("0123456789") for word in found)}
        if "(" not in self.name and found[-1] in _SHORT:
            words.add("precision")
        if mode == "max" and ended and self.falling and not words & _RISING:
            return f'mode is "max", and `{self.name}` falls'
        if mode == "max" and words & _FALLING and not words & _RISING:
            return f'mode is "max", and `{self.name}` is to fall'
        if mode == "min" and words & _RISING and not words & (_FALLING | _EITHER):
            return f'mode is "min", and `{self.name}` is to rise'
        return ""


class PlateauWithoutMetric(Rule):
    """ReduceLROnPlateau is stepped with a loss of a training batch, a count, or a metric for the other mode.

    What it does
    ------------
    Finds ``ReduceLROnPlateau`` schedules that

    - are stepped after every optimizer step with the loss that backward has just used;
    - are stepped once per epoch with the loss of the last batch;
    - wait for a training loss to rise (``mode="max"``), or for a metric that fell in nearly all steps, or in the
      first ones, or, by the name of the metric, for any loss or error to rise or for an accuracy to fall;
    - are stepped with the number of the epoch.

    Why it matters
    --------------
    The loss of single batches fluctuates, so it rarely beats its best value so far. ``patience`` then counts batches
    instead of epochs, and the learning rate becomes negligible while the model still improves.

    Example
    -------
    ::

        for x, y in loader:
            ...
            optimizer.step()
            scheduler.step(loss.item())     # the loss of this batch

    Fix
    ---
    Step it once per epoch with a metric of the validation set, or with the mean loss of the epoch::

        for epoch in range(epochs):
            train()
            scheduler.step(validate())

    Known false alarms
    ------------------
    None known. Training on the whole data set at once has no batches, so its loss is a metric: without a DataLoader, or
    with one batch per epoch, confidence is never above low.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html
    """

    id = "plateau-without-metric"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (ev.BackwardEnded, ev.LoaderStarted, ev.SchedulerStepped)
    needs = (ev.SchedulerStepped,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.plateau_without_metric(program)

    def __init__(self) -> None:
        super().__init__()
        self._passes: dict[int, int] = {}
        self._loader: int | None = None
        self._tallies: dict[tuple[int, Site | None], _Tally] = {}

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._tallies else f"no step of a {_KIND}")

    def suspected(self) -> bool:
        tallies = self._tallies.values()
        few = any(0 < tally.per_step + tally.per_pass == tally.steps < _LEAST_PER_PASS for tally in tallies)
        return super().suspected() or few

    def observe(self, event: Event, run: Progress) -> None:
        self._count(event, 1, run.step)
        match event:
            case ev.BackwardEnded(in_step=False):
                self._loader = event.loader
            case ev.SchedulerStepped(metric=metric) if metric:
                self._judge(event.scheduler, run)

    def again(self, event: Event, times: int) -> None:
        self._count(event, times, 0)

    def _count(self, event: Event, times: int, step: int) -> None:
        match event:
            case ev.LoaderStarted():
                self._passes[event.loader] = self._passes.get(event.loader, 0) + times
            case ev.SchedulerStepped(metric=metric) if metric:
                key = (event.scheduler, event.site)
                tally = self._tallies.get(key)
                if tally is None:
                    tally = self._tallies[key] = _Tally(event.site, step)
                tally.steps, tally.name = tally.steps + times, event.metric_name
                tally.counted += times * (metric == "count")
                tally.falling = metric == "falling"
                if event.metric_is_training_loss and event.optimizer_steps == 1:
                    tally.per_step += times
                elif event.metric_is_training_loss and event.optimizer_steps > 1:
                    tally.per_pass += times

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        for number in {number for number, _ in self._tallies}:
            self._judge(number, run, ended=True)

    def _judge(self, number: int, run: Progress, *, ended: bool = False) -> None:
        built = run.schedulers.get(number) or ev.SchedulerBuilt(scheduler=number, kind=_KIND)
        for (scheduler, _), tally in self._tallies.items():
            if scheduler != number:
                continue
            several = self._loader is not None and tally.per_step >= 5 * self._passes.get(self._loader, 1)
            if built.mode == "max" and tally.per_step + tally.per_pass == tally.steps >= _LEAST_PER_PASS:
                self._found(tally, built, tally.steps, Confidence.HIGH, run, 'mode is "max", and a loss falls')
            elif tally.counted == tally.steps >= _LEAST_COUNTED:
                label = f"`{tally.name}` counts the calls, and measures nothing"
                self._found(tally, built, tally.steps, Confidence.HIGH, run, label, "a count instead of a metric")
            elif tally.steps >= _LEAST_PER_PASS and (label := tally.worse(built.mode, ended=ended)):
                metric = "a metric that improves in the other direction"
                self._found(tally, built, tally.steps, Confidence.MEDIUM, run, label, metric)
            elif tally.per_step >= _LEAST_PER_STEP and 2 * tally.per_step > tally.steps:
                confidence = Confidence.HIGH if several else Confidence.LOW
                self._found(
                    tally, built, tally.per_step, confidence, run, "once per batch, with the loss of that batch"
                )
            elif tally.per_pass == tally.steps >= _LEAST_PER_PASS and self._loader is not None:
                label = "once per epoch, with the loss of its last batch"
                self._found(tally, built, tally.per_pass, Confidence.MEDIUM, run, label)

    def _found(
        self,
        tally: _Tally,
        built: ev.SchedulerBuilt,
        count: int,
        confidence: Confidence,
        run: Progress,
        label: str,
        metric: str = "the loss of a training batch",
    ) -> None:
        patience = "" if built.patience is None else f" with a patience of {built.patience}"
        draft = self.report(
            tally.site,
            f"{_KIND} was stepped with {metric}",
            run=run,
            label=label,
            related=(Mark(built.site, f"{built.name} is built{patience}"),) if built.site else (),
            help=f"step `{built.name}` once per epoch, with a metric of the validation set that fits its mode",
            confidence=confidence,
            unit="scheduler steps",
            key=(built.scheduler, tally.site),
        )
        draft.count, draft.total, draft.first_step, draft.confidence = count, tally.steps, tally.first_step, confidence
