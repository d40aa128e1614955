from __future__ import annotations

from truestep.events import Event, StoredCompared
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule


class SamplesChangeBetweenPasses(Rule):
    """An operation in place changes the stored samples, so that each pass over the data reads other inputs.

    What it does
    ------------
    Compares some values of the arrays that a data set or a variable holds with those of earlier steps. Reports an array
    if most of its rows were changed at least twice by one and the same multiplication or addition, or by random values
    that are written to a variable: the variable is a view of the array, and noise or masks pile up from pass to pass.
    In the second case a copy of the data set must change too when its samples are read.

    Why it matters
    --------------
    `self.images[index]` is a view of the stored images: `image /= 16` writes to them. The first pass is right, and each
    later one divides the results of the pass before. In the proof the accuracy is 61 % instead of 90 %.

    Example
    -------
    ::

        def __getitem__(self, index):
            image = self.images[index]
            image /= 16.0                      # writes to self.images
            return image, self.labels[index]

    Fix
    ---
    Make a new tensor::

            image = self.images[index] / 16.0

    Known false alarms
    ------------------
    Noise that is to pile up in the stored samples, and is added to a view of them. Not reported: `self.images[index] +=
    noise`, which says it, states that move on after the last use of the view, other changes that are not the same for
    all samples, data that are prepared at their first use, buffers and averages that are overwritten, and copies in the
    workers of a loader.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/tensor_view.html
    - https://numpy.org/doc/stable/user/basics.copies.html
    """

    id = "samples-change-between-passes"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (StoredCompared,)
    needs = (StoredCompared,)
    explains = ("loss-at-chance",)
    asks = "stored samples keep their values"

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, StoredCompared) or event.times < 2:
            return
        name = event.table
        if event.loader is not None and name.startswith("dataset."):
            name = f"{run.loader_name(event.loader)}.{name}"
        change = [f"multiplied by {event.factor:.3g}"] if event.factor != 1.0 else []
        change += [f"changed by {event.offset:+.3g}"] if event.offset else []
        label = "random values are written to a view, in place" if event.random else ""
        site = event.made or event.site
        self.report(
            site,
            f"the stored samples of `{name}` are changed each time that they are read",
            run=run,
            label=label or f"values are {' and '.join(change)}, in place",
            related=() if event.made is None or event.site is None else (Mark(event.site, "the model reads them"),),
            help="make a new tensor of the sample instead of an operation in place",
            cost=f"most of the {event.rows:,} samples were changed {event.times} times so far",
            unit="arrays",
            key=site,
        )
