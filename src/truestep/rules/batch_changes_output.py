"""Evidence from a copy of the model: the first operation that runs over the samples of a batch."""

from __future__ import annotations

from truestep.events import CheckSkipped, EdgesRead, Event, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress

_LEAST_BATCHES = 2


class BatchChangesOutput(SamplesMixed):
    """An operation of a model runs over the samples of a batch: a sample gets another result beside other samples.

    What it does
    ------------
    Repeats a call on a copy of the model in eval mode, twice: with the original batch, and with all samples replaced by
    one of them. If the result for that sample changes, compares both runs operation by operation, and reports the first
    one that gets the same values for the sample and returns others: a mean, maximum, sum, norm or attention over the
    first dimension, an index into it, or a linear layer that takes samples for features, as after a wrong transpose.

    Also reports a table that is read along the batch: all samples of a batch are the same, their results differ, and an
    operation adds to each sample the row of a parameter or buffer at its place, such as an encoding of positions.

    Also reports samples that are repeated one after another, as by ``x.repeat(3, 1)``, and joined with rows in which
    those of a sample lie next to each other, or viewed as such rows; and edges of a batch of graphs that keep the
    numbers of the nodes in each graph: with the graph of each node beside them, they all join nodes of the first ones.

    Why it matters
    --------------
    The first dimension of a batch is that of the samples, and nearly every operation with a wrong ``dim`` has a shape
    that fits by broadcasting. The model then learns from the chance neighbours of a sample, and one sample alone, or a
    sorted test set, gets other predictions. In the proof, the mean over the batch is subtracted instead of the mean
    over the features: the accuracy for samples that come one at a time is 51 % instead of 99 %.

    Example
    -------
    ::

        out, _ = self.lstm(x)               # (batch, sequence, features)
        return self.head(out[-1])           # the last sample of the batch, not the last step

    Fix
    ---
    Name the dimension that is meant::

        return self.head(out[:, -1])

    Known false alarms
    ------------------
    A statistic over the batch on purpose, such as the spread that a discriminator gets to see whether samples vary, if
    it begins with a mean. Not reported: matrix products and gathers over samples (graphs, memories, contrasts), all
    pairs of the samples of a batch, batch normalisation, standard deviations, batches that are the whole data set,
    models trained in the order of a time series, and graphs of one batch without their numbers beside the edges.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    - https://docs.pytorch.org/docs/stable/generated/torch.mean.html
    """

    id = "batch-changes-output"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    confidence = Confidence.MEDIUM
    watches = (SamplesCompared, CheckSkipped, EdgesRead, ModelCalled)
    needs = (SamplesCompared,)
    explains = ("loss-at-chance",)
    asks = "no operation runs over the samples"
    causes = frozenset({"operation", "place", "repeat"})

    def __init__(self) -> None:
        super().__init__()
        self._edges: dict[int, int] = {}
        """Model to its batches with edges of the first graphs only; -1 after others."""

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, EdgesRead):
            self._of_graphs(event, run)
        super().observe(event, run)

    def _of_graphs(self, event: EdgesRead, run: Progress) -> None:
        before = self._edges.get(event.model, 0)
        self._edges[event.model] = count = before + 1 if event.without and before >= 0 else -1
        if count < 0:
            self.withdraw(("edges", event.model))
        if count < _LEAST_BATCHES:
            return
        draft = self.report(
            event.site,
            f"the edges of {event.graphs} graphs in a batch all join nodes of the first ones",
            run=run,
            label=f"the last {event.without} of {event.nodes} nodes have no edge",
            cost=f"`{run.model_name(event.model)}` joins the first nodes of a batch by the edges of all graphs",
            help="add the number of nodes before a graph to its edges: `edges + offset`",
            unit="batches",
            key=("edges", event.model),
        )
        draft.count = draft.total = count

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        if event.model not in self._several:
            return
        name, chosen = run.model_name(event.model), event.kind == "select"
        call = self._called.get(event.model)
        related = () if call is None else (Mark(call, "the call"),)
        if event.cause == "place":
            self.report(
                event.site,
                f"each sample gets the row of `{event.kind}` at its place in the batch",
                run=run,
                label=f"adds {event.samples} rows of the table to {event.samples} samples, one to each",
                related=related,
                cost=f"on a copy of `{name}`, equal samples of one batch got different results",
                help="read the table along the sequence: with the batch first, that is the second dimension",
                unit="checks",
                key=(event.site, event.kind),
            )
            return
        if event.cause == "repeat":
            times = event.after[0] // event.samples
            self.report(
                event.site,
                f"`{event.kind}` in `{name}` repeats the samples of a batch in another order than the rows beside them",
                run=run,
                label=f"has all {event.samples} samples {times} times, one after another",
                related=related,
                cost="on a copy, the result for a sample changed with the other samples of its batch",
                help=f"keep the rows of a sample together, as `repeat_interleave({times}, dim=0)` does",
                unit="checks",
                key=(event.site, event.kind),
            )
            return
        operation = "an index" if chosen else f"`{event.kind}`"
        self.report(
            event.site,
            f"{operation} in `{name}` {'takes one of' if chosen else 'runs over'} the samples of a batch",
            run=run,
            label=f"{'selects' if chosen else 'runs'} along the dimension of the {event.samples} samples",
            related=related,
            cost="on a copy, the result for a sample changed with the other samples of its batch",
            help="name the dimension that is meant: the first one is that of the samples",
            unit="checks",
            key=(event.site, event.kind),
        )
