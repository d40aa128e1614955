"""Evidence from a copy of the model, from images that a model gets, and from the view that made the input of a loss."""

from __future__ import annotations

from truestep.events import AxesRead, CheckSkipped, Event, LossComputed, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress

_LEAST_READS = 2
_ROUGHER = 1.4
"""Least ratio of the roughness of images to that of their memory in another order."""
_IN_MOST = 1.2
"""The same for four fifths of the images."""
_SMOOTH = 0.6
"""Largest roughness of images; that of noise is 1.1."""
_RIGHT = 0.9
"""Largest ratio for images in the right order."""


class ViewInsteadOfPermute(SamplesMixed):
    """A view swaps the sizes of the batch and another dimension, which mixes the samples.

    What it does
    ------------
    Repeats a call on a copy of the model in eval mode, twice: with the original batch, and with all samples replaced by
    one of them. The call is one of an evaluation, or else of the training. Reports the first ``view`` or ``reshape``
    that takes a batch with that sample at one index and returns one without it at any index, although the batch size is
    in the expected dimension; or that swaps sizes within each sample, such as (16, 9, 4) viewed as (16, 4, 9), or
    (16, 9, 8) as (16, 2, 9, 4). The view right before a loss is read from the autograd tape at sampled steps.

    Compares neighbouring values in the images with 2 to 4 channels that a model with convolutions is called on, also
    where they were reshaped long before. Reports images if the same numbers, read as (height, width, channel) in place
    of (channel, height, width) or the reverse, are much smoother: at two sampled calls, and in no call less smooth. The
    same for inputs of 0 and 1 that have, in the other order, one 1 for each position to the last of them.

    Why it matters
    --------------
    ``view`` changes the shape without moving the numbers. (batch, sequence, features) viewed as (sequence, batch,
    features) has the right shape but wrong contents: each supposed sample consists of pieces of several. In the proof
    the accuracy is that of guessing. Every prediction also depends on the other samples in the batch.

    Images in the wrong order have pieces of all channels in each, and neighbours that are far apart in the picture. In
    the second proof the accuracy for such images is 0.56 instead of 0.99.

    Example
    -------
    ::

        batch, length, features = x.shape
        out, _ = self.lstm(x.view(length, batch, features))     # right shape, but pieces of all samples

        out, (h, c) = self.lstm(x)                              # h is (2, batch, hidden) for two directions
        y = self.head(h.view(batch, -1))                        # the same failure

        images = rows.reshape(-1, 3, 32, 32)                    # of rows of height, width and channel

    Fix
    ---
    Move the dimension first, then merge dimensions::

        out, _ = self.lstm(x.permute(1, 0, 2))

        y = self.head(h.transpose(0, 1).reshape(batch, -1))

        images = rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)

    Known false alarms
    ------------------
    A view of the result of a layer that has learned this order, if an earlier view is not the one right before it.
    Images of textures that all repeat after as many pixels as there are channels. Not reported: views that split or
    merge neighbouring dimensions, views of dimensions of equal size, and images with fewer than 32 different values.

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
    watches = (AxesRead, SamplesCompared, CheckSkipped, ModelCalled, LossComputed)
    needs = (SamplesCompared,)
    explains = ("loss-at-chance",)
    asks = "no view mixes the samples of a batch"
    causes = frozenset({"view"})

    def __init__(self) -> None:
        super().__init__()
        self._reads: dict[int, int] = {}
        """Model to the number of reads of its inputs in the wrong order; -1 after any in the right one."""

    def observe(self, event: Event, run: Progress) -> None:
        super().observe(event, run)
        if isinstance(event, AxesRead):
            self._axes(event, run)
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

    def _axes(self, event: AxesRead, run: Progress) -> None:
        key, before = ("axes", event.model), self._reads.get(event.model, 0)
        wrong = event.most >= _IN_MOST and event.rough >= _ROUGHER * event.smooth and event.smooth <= _SMOOTH
        right = event.rough <= _RIGHT * event.smooth
        if event.classes:
            wrong, right = bool(event.order), not event.order
        self._reads[event.model] = reads = -1 if right or before < 0 else before + wrong
        if reads < 0 or _is_part(event.model, run):
            self.withdraw(key)
            return
        if not wrong or reads < _LEAST_READS:
            return
        what = "classes" if event.classes else "images"
        cost = (
            f"neighbouring values differ by {event.rough:.2g} standard deviations, and by {event.smooth:.2g} in this "
            "order"
        )
        draft = self.report(
            event.view or event.site,
            f"the {what} that `{run.model_name(event.model)}` gets are scrambled: their numbers are stored with the "
            f"channels {'last' if event.order.endswith('channel') else 'first'}",
            run=run,
            label="changes the shape without moving the numbers" if event.view else "gets them in another order",
            related=(Mark(event.site, "the call"),) if event.view and event.site else (),
            cost="each position has several classes or none, and one in this order" if event.classes else cost,
            help="give a reshape the sizes in the order of the memory, then move the channels with `permute`",
            unit="calls read",
            key=key,
        )
        draft.count = draft.total = reads

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


def _is_part(number: int, run: Progress) -> bool:
    """Return True if a model is a part of another one, such as the head of a decoder, which gets features."""
    model = run.models.get(number)
    mine = set(model.parameters) if model is not None else set()
    return bool(mine) and any(mine < set(other.parameters) for other in run.models.values())
