from __future__ import annotations

import math

from truestep import events as ev
from truestep.accounts.samples import Inputs
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule

_FACTOR = 6.0
_SMALL = 0.1
"""Least distance of the means, in standard deviations of training, or least ratio of the standard deviations."""
_LEAST_READS = 3
_LEAST_VALUES = 64
_BOTH = Condition(
    "no inputs with decimals of both training and evaluation",
    lambda run: any((model, False) in run.samples.inputs for model, training in run.samples.inputs if training),
)


class InputsOnAnotherScale(Rule):
    """A model is evaluated on inputs of another scale than those that it was trained on.

    What it does
    ------------
    Compares the first arguments of a model in training with those in evaluation, at sampled steps; if these are whole
    numbers, such as categories, also the next argument with decimals. Reports an
    evaluation, with a result that is compared with targets, if in each call that was read the mean is at least 6
    standard deviations of training from the mean of training, or the standard deviation at least 6 times that of
    training or less than a tenth of it; or if all inputs of training were zero, and those of the evaluation are not.

    Why it matters
    --------------
    The data of the evaluation have missed a step of their preparation: they were not normalised, or not divided by 255.
    A model returns some number for any input, so nothing but the figures of the evaluation shows it, and they are taken
    for those of the model. In the proof the error on held-out rows is 731 instead of 0.17.

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
    An evaluation far outside of the training data on purpose, without another one, such as a test of extrapolation.
    Not reported: the steps of a sampler, evaluations with some calls within the range, calls on fewer than 64 values,
    whole numbers, and other arguments, such as states, masks and noise.

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
    watches = (ev.ModelCalled,)
    needs = (ev.InputsRead, _BOTH)

    def __init__(self) -> None:
        super().__init__()
        self._measuring: set[tuple[int, Site | None]] = set()
        """Models and lines with calls that measure the model; the steps of a sampler do not."""

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ev.ModelCalled) and not event.grad and event.use:
            self._measuring.add((event.model, event.site))

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        for (model, training), inputs in run.samples.inputs.items():
            trained = run.samples.inputs.get((model, True))
            if training or trained is None or len(trained.reads) < _LEAST_READS:
                continue
            self._judge(model, inputs, trained, run)
        for (model, argument, training), inputs in run.samples.features.items():
            trained = run.samples.features.get((model, argument, True))
            varied = trained is not None and all(0 < read.spread < math.inf for read in trained.reads)
            if not training and trained is not None and varied and len(trained.reads) >= _LEAST_READS:
                self._judge(model, inputs, trained, run)

    def _judge(self, model: int, inputs: Inputs, trained: Inputs, run: Progress) -> None:
        measuring = all((model, read.site) in self._measuring for read in inputs.reads)
        if measuring and all(_is_far(read, trained) for read in inputs.reads):
            self._found(model, inputs, trained, run)

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
