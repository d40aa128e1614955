"""Evidence from a copy of the model, and from the sizes before and after the view that made the input of a loss."""

from __future__ import annotations

from truestep.events import CheckSkipped, Event, LossComputed, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress


class ViewInsteadOfPermute(SamplesMixed):
    """A view swaps the sizes of the batch and another dimension, which mixes the samples.

    What it does
    ------------
    Repeats a call on a copy of the model in eval mode, twice: with the original batch, and with all samples replaced by
    one of them. The call is one of an evaluation, or else of the training. Reports the first ``view`` or ``reshape``
    that takes a batch with that sample at one index and returns one without it at any index, although the batch size is
    in the expected dimension; or that swaps sizes within each sample, such as (16, 9, 4) viewed as (16, 4, 9), or
    (16, 9, 8) as (16, 2, 9, 4). The view right before a loss is read from the autograd tape at sampled steps.

    Why it matters
    --------------
    ``view`` changes the shape without moving the numbers. (batch, sequence, features) viewed as (sequence, batch,
    features) has the right shape but wrong contents: each supposed sample consists of pieces of several. In the proof
    the accuracy is that of guessing. Every prediction also depends on the other samples in the batch.

    Example
    -------
    ::

        batch, length, features = x.shape
        out, _ = self.lstm(x.view(length, batch, features))     # right shape, but pieces of all samples

        out, (h, c) = self.lstm(x)                              # h is (2, batch, hidden) for two directions
        y = self.head(h.view(batch, -1))                        # the same failure

    Fix
    ---
    Move the dimension first, then merge dimensions::

        out, _ = self.lstm(x.permute(1, 0, 2))

        y = self.head(h.transpose(0, 1).reshape(batch, -1))

    Known false alarms
    ------------------
    A view of the result of a layer that has learned this order, if an earlier view is not the one right before it. Not
    reported: views that split or merge neighbouring dimensions, and views of dimensions of equal size.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    - https://docs.pytorch.org/docs/stable/generated/torch.permute.html
    """

    id = "view-instead-of-permute"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    confidence = Confidence.MEDIUM
    watches = (SamplesCompared, CheckSkipped, ModelCalled, LossComputed)
    needs = (SamplesCompared,)
    explains = ("loss-at-chance",)
    asks = "no view mixes the samples of a batch"
    causes = frozenset({"view"})

    def observe(self, event: Event, run: Progress) -> None:
        super().observe(event, run)
        if isinstance(event, LossComputed) and event.viewed:
            before, after = event.viewed
            self.report(
                event.site,
                f"the input of {event.kind} is a view of {before} as {after}, which scrambles positions and classes",
                run=run,
                label="the view changes the shape without moving the numbers",
                cost="scores of one position are compared with the target of another",
                help="move the dimension with `transpose` or `permute` before the loss",
                unit="sampled losses",
            )

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        scrambled = f"the {event.samples} samples of a batch" if event.mixed else "the dimensions of each sample"
        also = f"on a copy of `{run.model_name(event.model)}`, a sample's result changed with the other samples"
        self.report(
            event.site,
            f"a {event.kind} of {event.before} as {event.after} scrambles {scrambled}",
            run=run,
            label="changes the shape without moving the numbers",
            cost=also if event.mixed else "",
            help="move the dimension with `permute` or `transpose` before changing the shape",
            unit="checks",
        )
