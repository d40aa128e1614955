from __future__ import annotations

import math
from typing import TypeVar

from truestep import events as ev
from truestep.accounts.samples import Inputs
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import Condition
from truestep.rules._levels import Grid, any_scaled_as, by_line, grids
from truestep.rules._loader_names import is_only_held_out, is_trained_on
from truestep.rules._rule import Progress, Rule

_Read = TypeVar("_Read", ev.InputsRead, ev.LevelsRead)
_FACTOR = 6.0
_SMALL = 0.1
"""Least distance of the means, in standard deviations of training, or least ratio of the standard deviations."""
_PREPARED = 2.0
"""Largest mean and standard deviation of inputs that were normalised, or divided by their range."""
_WIDER = 3.0
"""Least ratio of the standard deviations of values as measured, beside an evaluation on normalised ones."""
_LEAST_READS = 3
_LEAST_VALUES = 64
_HOW = {"range": "the range 0 to 1", "standard": "a mean of 0 and a standard deviation of 1"}
_BOTH = Condition(
    "no inputs with decimals of both training and evaluation",
    lambda run: (
        ev.FirstNormRead in run.met
        or any((model, False) in run.samples.inputs for model, training in run.samples.inputs if training)
    ),
)


class InputsOnAnotherScale(Rule):
    """A model is evaluated on inputs of another scale than those that it was trained on.

    What it does
    ------------
    Compares the first arguments of a model in training with those in evaluation, at sampled steps; if these are whole
    numbers, such as categories, also the next argument with decimals. Reports an evaluation, with a result that is
    compared with targets, if in each call that was read the mean is at least 6 standard deviations of training from the
    mean of training, or the standard deviation at least 6 times that of training or less than a tenth of it; or if all
    inputs of training were zero, and those of the evaluation are not.

    Values that were measured in steps, such as pixels, have levels of equal distance, also after they are scaled.
    Reports an evaluation on other levels than those of all calls in training, if the samples have a similar spread in
    levels, and the inputs differ by 0.4 standard deviations or a factor of 1.5.

    Reports an evaluation on a table with columns of about the range 0 to 1, beside training data with means of 0 and
    standard deviations of 1 to the precision of floats in at least 4 columns, and the reverse.

    Reports an evaluation on a table with columns in another order: at least 3 columns are far from the distribution of
    those in the same places of the training, and each of them has that of another one.

    Data with a name such as ``val_loader`` or ``x_test`` are compared with the training by themselves, if its inputs
    have a small mean and spread, as after a normalisation, and theirs is at least 3 times as wide.

    A model that was trained by another process shows its training in the statistics of its first batch normalisation.
    Reports an evaluation, as above, if the inputs of this layer are as far from them in each call that was read.

    Why it matters
    --------------
    The data of the evaluation have missed a step of their preparation: they were not normalised, or not divided by 255.
    A model returns some number for any input, so nothing but the figures of the evaluation shows it, and they are taken
    for those of the model. In the proof the error on held-out rows is 731 instead of 0.17; in the second one, pictures
    are divided by 255 and not normalised, and the accuracy is 0.41 instead of 0.66.

    Example
    -------
    ::

        train = (data[:800] - mean) / std
        test = data[800:]                       # as measured

    Fix
    ---
    Prepare both with one function, and with the statistics of the training data::

        test = (data[800:] - mean) / std

    Known false alarms
    ------------------
    An evaluation far outside of the training data on purpose, such as a test of extrapolation, without another one, or
    on data that are called ``x_test`` or the like.
    Not reported: the steps of a sampler, evaluations with some calls within the range, calls on fewer than 64 values,
    columns in another
    order beside an evaluation in that of the training, or whose distributions are alike; whole numbers, and other
    arguments, such as states, masks and noise; data with another name than those of a plain
    test, such as ``test_noisy``, beside an evaluation as in training; other levels beside such an evaluation, unless it
    is on data of the training, and after a training on noise, mixtures or resized pictures, which have no levels;
    points of a curve or a plane.

    References
    ----------
    - https://scikit-learn.org/stable/common_pitfalls.html#inconsistent-preprocessing
    - https://docs.pytorch.org/vision/stable/transforms.html
    """

    id = "inputs-on-another-scale"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (ev.FirstNormRead, ev.OrderRead, ev.ScalingRead)
    needs = (ev.InputsRead, _BOTH)
    asks = "the inputs of an evaluation are prepared as those of the training"

    def __init__(self) -> None:
        super().__init__()
        self._normalised: dict[int, list[ev.FirstNormRead]] = {}
        """Model to the inputs of its first batch normalisation in evaluations."""
        self._tables: list[ev.ScalingRead] = []
        """Tables of evaluations that are scaled in another way than the training."""
        self._orders: list[ev.OrderRead] = []

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ev.FirstNormRead):
            self._normalised.setdefault(event.model, []).append(event)
        elif isinstance(event, ev.OrderRead):
            self._orders.append(event)
        elif isinstance(event, ev.ScalingRead) and event.kind == "unlike":
            self._tables.append(event)

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        for (model, training), inputs in run.samples.inputs.items():
            trained = run.samples.inputs.get((model, True))
            if training or trained is None or len(trained.reads) < _LEAST_READS:
                continue
            if not self._judge(model, inputs, trained, run):
                self._compare(model, run)
            prepared = max(abs(trained.mean), trained.spread) <= _PREPARED
            for some in _held_out(inputs.reads, run) if prepared and not self._drafts else ():
                if Inputs(some).spread >= _WIDER * trained.spread:
                    self._judge(model, Inputs(some), trained, run)
        for (model, argument, training), inputs in run.samples.features.items():
            trained = run.samples.features.get((model, argument, True))
            varied = trained is not None and all(0 < read.spread < math.inf for read in trained.reads)
            if not training and trained is not None and varied and len(trained.reads) >= _LEAST_READS:
                self._judge(model, inputs, trained, run)

        for one in self._tables if not self._drafts else ():
            if (one.model, one.site) in run.samples.measuring:
                self._scaled_by_other_means(one, run)
        plain = any(not order.moved for order in self._orders)
        for order in self._orders if not plain else ():
            if (order.model, order.site) in run.samples.measuring:
                self._moved(order, run)
        for model, reads in self._normalised.items():
            if (model, True) not in run.samples.inputs:  # else these are compared
                self._judge_normalised(model, reads, run)

    def _scaled_by_other_means(self, one: ev.ScalingRead, run: Progress) -> None:
        """Report a table with another kind of scaling than that of the training, which has exact statistics."""
        here, there = _HOW[one.how], _HOW["range" if one.how == "standard" else "standard"]
        draft = self.report(
            one.made or one.site,
            f"`{one.table}` is scaled in another way than the training data",
            run=run,
            label=f"each column: about {here}; in training {there}",
            related=() if one.made is None or one.site is None else (Mark(one.site, "the evaluation"),),
            help="scale both with one function, and with the statistics of the training data",
            cost=f"in all {one.features} features, over {one.rows:,} rows of the evaluation",
            unit="tables",
            key=one.made or one.site,
        )
        draft.total = len(self._tables)

    def _moved(self, one: ev.OrderRead, run: Progress) -> None:
        """Report a table with columns in another order."""
        draft = self.report(
            one.made or one.site,
            f"`{one.table}` has its columns in another order than the training data",
            run=run,
            label=f"{one.moved} of {one.columns} columns are in the places of others",
            related=() if one.made is None or one.site is None else (Mark(one.site, "the evaluation"),),
            help="take the columns of both by one list of names, in the order of the training",
            cost=f"the model reads other features, over {one.rows:,} rows of the evaluation",
            unit="tables",
            key=one.made or one.site,
        )
        draft.total = len(self._orders)

    def _judge_normalised(self, model: int, reads: list[ev.FirstNormRead], run: Progress) -> None:
        """Report inputs that are far from the running statistics of the first batch normalisation."""
        far = all(max(read.distance, read.ratio) >= _FACTOR for read in reads)
        near = all(0 < read.ratio < _SMALL for read in reads)
        if not (far or near) or not run.samples.measures(model, reads):
            return
        name, first = run.model_name(model), reads[0]
        layer = f"`{first.layer}`" if first.layer else "the layer"
        draft = self.report(
            first.site,
            f"`{name}` is evaluated on inputs of another scale than those of its training",
            run=run,
            label=f"{layer} gets {first.mean:.2g} +- {first.spread:.2g}, "
            f"its statistics are {first.before:.2g} +- {first.before_spread:.2g}",
            help="prepare the inputs as those of the training, with its statistics",
            cost="the figures of the evaluation are not those of the model",
            unit="calls read",
            key=model,
        )
        draft.count = draft.total = len(reads)

    def _judge(self, model: int, inputs: Inputs, trained: Inputs, run: Progress) -> bool:
        """Report inputs that are far from those of training; return True if they were."""
        if not run.samples.measures(model, inputs.reads) or not all(_is_far(read, trained) for read in inputs.reads):
            return False
        self._found(model, inputs, trained, run)
        return True

    def _compare(self, model: int, run: Progress) -> None:
        """Report inputs that were scaled in another way, as the distances of their levels show."""
        before, after = run.samples.levels.get((model, True), []), run.samples.levels.get((model, False), [])
        trained, lines = grids(before), by_line(after)
        if len(before) < _LEAST_READS:
            return
        if any_scaled_as(trained, lines):
            others = [read for read in after if not _is_of_training(read, run)]
            if any_scaled_as(trained, by_line(others)):
                return
            lines = _held_out(others, run)
        for line in lines:
            for part, grid in grids(line).items() if run.samples.measures(model, line) else ():
                chosen = [read.even for read in before if read.part == part]
                if part in trained and grid.is_far_from(trained[part]) and 2 * sum(chosen) < len(chosen):
                    self._scaled_differently(line, part, (grid, trained[part]), before[0].site, run)
                    return

    def _scaled_differently(
        self, reads: list[ev.LevelsRead], part: str, both: tuple[Grid, Grid], before: Site | None, run: Progress
    ) -> None:
        name = run.model_name(reads[0].model)
        draft = self.report(
            reads[0].site,
            f"`{name}` is evaluated on inputs that were scaled in another way than those of its training",
            run=run,
            label=_scaled(both[0], part),
            related=() if before is None else (Mark(before, _scaled(both[1], part)),),
            help="prepare the inputs of the evaluation as those of the training",
            cost="the figures of the evaluation are not those of the model",
            unit="calls read",
            key=reads[0].model,
        )
        draft.count = draft.total = sum(read.part == part for read in reads)

    def _found(self, model: int, inputs: Inputs, trained: Inputs, run: Progress) -> None:
        name, first, before = run.model_name(model), inputs.reads[0], trained.reads[0]
        what = f"`{first.argument}`" if first.argument else "inputs"
        draft = self.report(
            first.site,
            f"`{name}` is evaluated on inputs of another scale than those of its training",
            run=run,
            label=f"{what} of {inputs.mean:.2g} +- {inputs.spread:.2g}",
            related=() if before.site is None else (Mark(before.site, f"{trained.mean:.2g} +- {trained.spread:.2g}"),),
            help="prepare the inputs of the evaluation as those of the training",
            cost="the figures of the evaluation are not those of the model",
            unit="calls read",
            key=model,
        )
        draft.count = draft.total = len(inputs.reads)


def _held_out(reads: list[_Read], run: Progress) -> list[list[_Read]]:
    """Return the calls on data that are held out, as their names say and nothing else: these are to be alike."""
    groups: dict[str, list[_Read]] = {}
    for read in reads:
        name = _name(read, run)
        if is_only_held_out(name):
            groups.setdefault(name, []).append(read)
    return list(groups.values())


def _is_of_training(read: ev.LevelsRead, run: Progress) -> bool:
    """Return True if a call is on data of the training: its scale says nothing about data that are held out."""
    trained = {met.dataset for number in run.samples.trained if (met := run.loaders.get(number)) is not None}
    met = run.loaders.get(read.loader) if read.given == "*" and read.loader is not None else None
    return is_trained_on(_name(read, run)) or (met is not None and met.dataset in trained)


def _name(read: ev.InputsRead | ev.LevelsRead, run: Progress) -> str:
    """Return the name of the data that a model was called on."""
    return run.loader_name(read.loader) if read.given == "*" and read.loader is not None else read.given


def _scaled(grid: Grid, part: str) -> str:
    """Return the levels of values, their mean and standard deviation."""
    where = f"{part}: " if part else ""
    return f"{where}{grid.mean:.2g} +- {grid.spread:.2g}, in steps of {grid.distance:.3g}"


def _is_far(read: ev.InputsRead, trained: Inputs) -> bool:
    """Return True if the values of a call are far from those of training."""
    values = 1
    for size in read.shape:
        values *= size
    same = read.floating and trained.reads[0].floating and values >= _LEAST_VALUES
    if same and all(one.least == one.most == 0.0 for one in trained.reads):
        return read.spread > 0
    same = same and trained.spread > 0
    distance = max(abs(read.mean - trained.mean), read.spread)
    is_small = 0 < read.spread < _SMALL * trained.spread
    return same and (distance >= _FACTOR * trained.spread or is_small)
