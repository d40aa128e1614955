from __future__ import annotations

from truestep.events import Event, LoaderUnread, ModelCalled, PartUnused, RunEnded, Site, WeightsKept
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, Condition
from truestep.rules._loader_names import is_for_choice, is_trained_on
from truestep.rules._rule import Progress, Rule

_CLEAN = 0.1
"""Share of the rows of an evaluation that were trained on, below which it is on other samples."""
_LEAST_KEPT = 2
"""Weights that are kept once may be those of a fixed step."""


def _evaluated(run: Progress) -> bool:
    return bool(run.samples.evaluated or run.samples.evaluations)


_EVALUATED = Condition("no evaluation on rows or loaders that could be told apart", _evaluated)


class ChosenOnTestData(Rule):
    """The best weights are chosen by an evaluation on test samples, while the validation samples are never read.

    What it does
    ------------
    Follows the weights that are kept in a branch for a new best figure, the samples of the evaluations in between, and
    the parts of the data that nothing reads: arrays, indices and attributes that no statement reads, and DataLoaders
    that are built and never read. Reports weights that were kept at least twice, if a part with a name such as ``val``
    or ``dev`` is never read, no evaluation is on samples with such a name, and one is on samples that the model was not
    trained on.

    Why it matters
    --------------
    The figure of the chosen weights is the largest of many, and part of it is chance. It is reported as the quality on
    samples that the model was not fitted to, and does not hold on new ones. In the proof, the accuracy on 100 test
    samples is 10 points above that on fresh samples.

    Example
    -------
    ::

        train, valid, test = order.split([800, 100, 100])
        ...
        accuracy = evaluate(model, x[test], y[test])        # meant: valid
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            torch.save(model.state_dict(), "best.pt")

    Fix
    ---
    Choose the weights by the validation samples, and read the test samples once, at the end::

        accuracy = evaluate(model, x[valid], y[valid])

    Known false alarms
    ------------------
    A program that sets a validation part aside for another program. Not reported: programs with two parts only, parts
    in a dict, and a choice by the loss of the training.

    References
    ----------
    - https://scikit-learn.org/stable/modules/cross_validation.html
    """

    id = "chosen-on-test-data"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (WeightsKept, PartUnused, LoaderUnread, ModelCalled)
    needs = (WeightsKept, _EVALUATED, FINISHED)
    asks = "weights are chosen by validation samples"

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[Site | None, int] = {}
        """Line of the choice to the number of times that weights were kept."""
        self._unused: dict[str, Site | None] = {}
        self._of_loaders: set[Site | None] = set()
        """Lines with calls on batches of loaders, which are known by the loader."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case WeightsKept():
                self._kept[event.site] = self._kept.get(event.site, 0) + 1
            case ModelCalled() if event.loader is not None:
                self._of_loaders.add(event.site)
            case PartUnused() | LoaderUnread() if is_for_choice(event.name):
                self._unused.setdefault(event.name, event.site)

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, WeightsKept):
            self._kept[event.site] = self._kept.get(event.site, 0) + times

    def ended(self, event: RunEnded, run: Progress) -> None:
        kept = {site: times for site, times in self._kept.items() if times >= _LEAST_KEPT}
        others = self._others(run)
        if event.how != "finished" or len(kept) != 1 or not self._unused or not others:
            return
        ((site, times),) = kept.items()
        ((part, made), *_) = self._unused.items()
        name, place = others[0]
        draft = self.report(
            site,
            f"the best weights are chosen by samples of `{name}`, and `{part}` is never read",
            run=run,
            label="chooses the weights",
            related=(Mark(made, f"`{part}` is stored here"),) if made else (),
            help=f"choose the weights by an evaluation on `{part}`",
            cost="the figure of the chosen weights is the best of many, and not that on new samples",
            unit="kept states",
        )
        if place is not None and place != made:
            draft.related = (*draft.related, Mark(place, f"evaluates on `{name}`"))
        draft.count, draft.first_step = times, None

    def _others(self, run: Progress) -> list[tuple[str, Site | None]]:
        """Return the samples of evaluations that were not trained on, with the line that reads them.

        Empty if an evaluation is on samples with the name of a validation, or on others that are unknown.
        """
        found: list[tuple[str, Site | None]] = []
        for loader, site in run.samples.evaluated.items():
            if loader not in run.samples.trained:
                found.append((run.loader_name(loader), site))
        for site, one in run.samples.evaluations.items():
            if site in self._of_loaders:
                continue
            if not one.last.table or not one.last.seen:
                return []
            if one.share < _CLEAN:
                found.append((one.last.table, site))
        return [] if any(is_for_choice(name) or is_trained_on(name) for name, _ in found) else found
