from __future__ import annotations

from collections.abc import Iterator

from truestep.accounts._account import amount
from truestep.events import Event, LevelsRead, RunEnded, ScalingRead, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._levels import any_scaled_as, by_line, grids
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import scaling
from truestep.syntax import Program, Suspicion

_LEAST_FEATURES = 4
"""Fewer, as the channels of pictures, have statistics of so many values that those of both parts hardly differ."""
_LEAST_SHIFT = 0.2
"""Distance of the statistics of a training series from those of both parts with which a single feature counts."""
_LEAST_ROWS = 20
_LEAST_READS = 3
_HOW = {
    "standard": "a mean of 0 and a standard deviation of 1",
    "range": "the range 0 to 1",
    "centred": "a mean of 0, as in training",
    "robust": "medians of 0, and quartiles at a distance of 1",
}
_STATISTICS = {
    "standard": "means and deviations",
    "sample": "means and deviations",
    "centred": "means",
    "robust": "medians and quartiles",
    "range": "minima and maxima",
    "symmetric": "minima and maxima",
}


class ScaledWithEvaluationData(Rule):
    """The features are scaled with statistics of the evaluation data: by themselves, or together with the training's.

    What it does
    ------------
    Looks up the rows of evaluations in the tables that variables of the program hold, and reads the statistics of all
    rows of these tables. Reports an evaluation on features with a mean of 0 and a standard deviation of 1 to the
    precision of floats, as those of the training: both were scaled, each with its own statistics. Also reports features
    with such values over the rows of training and evaluation together, and over neither alone: they were scaled before
    the split. The range 0 to 1 counts in the same way, and medians of 0 with quartiles at a distance of 1; with two
    or three features, statistics of the evaluation and of the training that are exact to rounding.

    Windows of a series count as the series that they were cut from: an array in a variable or a data set, or the
    windows put together again with the targets that follow them. An evaluation with its own statistics is reported,
    too, if it has a multiple of the deviation, such as 2; and beside another evaluation that is scaled otherwise, if
    the training was scaled with statistics of some of its steps, such as those without faults.

    Also reports an evaluation on rows, or windows, of a table or series that the program holds as it was measured, if
    the inputs are scaled with statistics of all of it: its means and deviations, medians and quartiles, or minima and
    maxima bring each input of the training and of the evaluation that was read back to one of its rows. The training
    alone must have others: in four columns, or by 0.2 or more.

    Also reports evaluations in which each sample, or each batch, has a mean of 0 and a standard deviation of 1, if all
    calls of the training are on values that were scaled in one way: their levels have the same distance everywhere.

    Why it matters
    --------------
    A model in use gets single samples, which are scaled with the statistics of the training. With its own statistics,
    an evaluation hides every shift of the data, and moves the samples that the model reads: in the proof the error on
    rows of a warmer year is 1.00 instead of 0.11. Statistics of all rows depend on those that are held out: in the
    second proof a few failed sensors there squeeze the features of the training, and the error is 0.59 instead of 0.35.
    In the third one, each batch is scaled alone, and a cold and a warm day become equal: 0.39 instead of 0.13.

    Example
    -------
    ::

        train = (train - train.mean(0)) / train.std(0)
        test = (test - test.mean(0)) / test.std(0)

    Fix
    ---
    Split first, take the statistics from the training part, and use them for all parts::

        mean, std = train.mean(0), train.std(0)
        train, test = (train - mean) / std, (test - mean) / std

    Known false alarms
    ------------------
    Data that were published with such values, groups of rows that were scaled one by one and shuffled later, and
    devices or domains of which each is scaled by itself on purpose; these are not reported if variables hold the values
    as measured, and at least three in ten columns have twice the deviation, or half, of the training's. Three channels
    of pictures or series, scaled with the statistics of both parts, are reported with low confidence, unless the mean
    or the deviation of the training part alone differs from that of both by 0.2 or more.
    Not reported: samples and groups of rows that are scaled one by one in training, too, one column, fewer than 30 rows
    of a table or 100 steps of a series, two or three columns scaled together with the training, series with as many
    steps as that of the training, or from a function that scales others, too, columns of few different values, series
    that repeat without noise or are symmetric, windows in another order than that of their series, parts of one array
    that a data set cuts itself, tables that no variable holds, and rows scaled before the split in a run with another
    evaluation; samples that are scaled one by one beside an evaluation in the way of the training, or after a training
    on noise, mixtures or resized pictures; ranges in a program that computes no minimum or maximum, and joint
    statistics of results without targets that are written to a file. Of tables as measured, not reported: those beside
    an evaluation on rows that they do not have, those with a name of the training, and values that are transformed
    before they are scaled.

    References
    ----------
    - https://scikit-learn.org/stable/common_pitfalls.html#data-leakage-during-pre-processing
    - https://doi.org/10.1016/j.patter.2023.100804
    """

    id = "scaled-with-evaluation-data"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (ScalingRead,)
    needs = (ScalingRead, FINISHED)
    explains = ("loss-at-chance",)
    asks = "features are scaled with the training data only"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return scaling.scaled_with_evaluation_data(program)

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[tuple[str, int, int | None], ScalingRead] = {}
        """Name and rows of a table, and loader, to its latest event."""
        self._fitted: list[ScalingRead] = []

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ScalingRead) and event.fitted:
            self._fitted.append(event)
        elif isinstance(event, ScalingRead):
            self._tables[event.table, event.rows, event.loader] = event

    def ended(self, event: RunEnded, run: Progress) -> None:
        series = {(one.site, one.loader) for one in self._tables.values() if one.series}
        clean = bool(event.given_up) or any(  # another evaluation may not have been read
            not one.kind and one.rows >= _LEAST_ROWS and (one.site, one.loader) not in series  # windows of the series
            for one in self._tables.values()
        )
        for one in self._tables.values() if event.how == "finished" else ():
            if one.kind == "own":
                name = _name(one.table, one, run)
                self._found(one, f"{name} is scaled with its own statistics", name, run)
            elif one.kind == "joint" and not clean:
                name = _name(one.whole, one, run) if one.whole else "both together"
                self._found(one, "training and evaluation data are scaled with statistics of both", name, run)
        known = event.how == "finished" and not self._drafts and not event.given_up
        for one in self._fitted if known else ():
            if run.samples.is_seldom(one.site):
                self._of_all(one, run)
        for model, training in run.samples.levels if not self._drafts else ():
            if not training:
                self._compare(model, run)

    def _of_all(self, one: ScalingRead, run: Progress) -> None:
        """Report an evaluation on rows of a table, and a training that is scaled with statistics of all of them."""
        draft = self.report(
            one.made or one.site,
            f"the inputs are scaled with {_STATISTICS[one.how]} of all of `{one.whole}`, rows of the test included",
            run=run,
            label=f"statistics of `{one.whole}`",
            related=() if one.made is None or one.site is None else (Mark(one.site, "evaluated on rows of it"),),
            help="take the statistics from the training part alone, and scale all parts with them",
            cost=f"exact in {amount(one.features, 'feature')}, over {one.rows:,} rows of the evaluation, too",
            unit="evaluations",
            key=one.made or one.whole,
        )
        draft.total = len(self._fitted)

    def _compare(self, model: int, run: Progress) -> None:
        """Report calls of an evaluation on inputs that were scaled one by one, unlike those of the training."""
        before, after = run.samples.levels.get((model, True), []), run.samples.levels.get((model, False), [])
        trained, lines = grids(before), by_line(after)
        if len(before) < _LEAST_READS or any(read.own for read in before) or not trained:
            return
        if any_scaled_as(trained, lines):
            return
        for line in lines:
            own = {read.own for read in line}
            one_by_one = own == {"sample"} or (own == {"batch"} and _differ(line))
            if one_by_one:
                self._scaled_alone(line, before[0].site, run)

    def _scaled_alone(self, reads: list[LevelsRead], before: Site | None, run: Progress) -> None:
        name, what = run.model_name(reads[0].model), reads[0].own
        draft = self.report(
            reads[0].site,
            f"`{name}` is evaluated on inputs that are scaled with statistics of each {what}, unlike its training",
            run=run,
            label=f"each {what}: {_HOW['standard']}",
            related=() if before is None else (Mark(before, "in training all values are scaled in one way"),),
            help="take the statistics from the training part alone, and scale all parts with them",
            cost=f"the same values give other inputs in another {what}",
            unit="calls read",
            key=reads[0].model,
        )
        draft.count = draft.total = len({id(read) for read in reads if read.part == reads[0].part})

    def _found(self, one: ScalingRead, message: str, name: str, run: Progress) -> None:
        loader = run.loaders.get(one.loader) if one.loader is not None else None
        site = one.made or (loader.site if loader is not None else None) or one.site
        draft = self.report(
            site,
            message,
            run=run,
            label=f"{name}: {_HOW[one.how]}",
            related=() if site is one.site or one.site is None else (Mark(one.site, "the evaluation"),),
            help="take the statistics from the training part alone, and scale all parts with them",
            cost=f"exact in {amount(one.features, 'feature')}, over the {one.rows:,} rows of the evaluation"
            + (" and those of the training" if one.kind == "joint" else ""),
            severity=Severity.ERROR if one.kind == "own" else None,
            confidence=Confidence.LOW if _differs_little(one) else None,
            unit="tables",
            key=site if one.kind == "own" else "joint",
        )
        draft.total = len(self._tables)


def _differs_little(one: ScalingRead) -> bool:
    """Return True if data are scaled together, and the statistics of the training alone are hardly others."""
    return one.kind == "joint" and one.features < _LEAST_FEATURES and one.shift < _LEAST_SHIFT


def _differ(reads: list[LevelsRead]) -> bool:
    """Return True if calls are on levels of different distances: they were not scaled together."""
    distances = {(read.part, read.distance) for read in reads}
    return len(distances) > len({read.part for read in reads})


def _name(table: str, one: ScalingRead, run: Progress) -> str:
    """Return the name of a table; of one that only a data set holds, the name of its loader."""
    return f"`{run.loader_name(one.loader) if one.loader is not None and table.startswith('dataset.') else table}`"
