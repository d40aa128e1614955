"""Judged on a copy of the model: a result that depends on the other samples, and the view after which it does."""

from __future__ import annotations

from truestep.events import CheckSkipped, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress


class ViewInsteadOfPermute(SamplesMixed):
    """A view swaps the sizes of the batch and of another dimension, and so cuts the samples to pieces.

    What it does
    ------------
    With ``--active``, repeats an evaluation call on a copy of the model, twice: with the batch, and with all
    samples but the last replaced by the last. Reports the first ``view`` or ``reshape`` before which the last
    sample lies in one place of the batch, and after which it lies in none, though the batch's size stands where the
    samples are expected.

    Why it matters
    --------------
    ``view`` gives the same numbers another shape; it moves none. (batch, sequence, features) viewed as (sequence,
    batch, features) has the right shape and wrong contents: what the model takes for one sample are pieces of
    several. In the proof the accuracy is that of guessing; every prediction also depends on what else is in the
    batch.

    Example
    -------
    ::

        batch, length, features = x.shape
        out, _ = self.lstm(x.view(length, batch, features))     # the right shape, pieces of all samples

        out, (h, c) = self.lstm(x)                              # h is (2, batch, hidden) for two directions
        y = self.head(h.view(batch, -1))                        # the same

    Fix
    ---
    Move the dimension first, then join what is to be joined::

        out, _ = self.lstm(x.permute(1, 0, 2))

        y = self.head(h.transpose(0, 1).reshape(batch, -1))

    Known false alarms
    ------------------
    None known. Quiet: views that split or join dimensions, views within a sample, views of dimensions of equal
    size, and models whose results do not depend on the other samples.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    - https://docs.pytorch.org/docs/stable/generated/torch.permute.html
    """

    id = "view-instead-of-permute"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    watches = (SamplesCompared, CheckSkipped, ModelCalled)
    needs = (SamplesCompared,)
    cause = "view"

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        self.report(
            event.site,
            f"a {event.kind} of {event.before} as {event.after} scrambles the {event.samples} samples of a batch",
            run=run,
            label="the shape is another one, the numbers stay where they are",
            cost=f"on a copy of `{run.model_name(event.model)}`, a sample's result changed with the other samples",
            help="move the dimension with `permute` or `transpose` before the shape is changed",
            unit="checks",
        )
