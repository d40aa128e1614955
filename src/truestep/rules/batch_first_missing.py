"""Evidence from a copy of the model: a result depends on the other samples of its batch, from this layer on."""

from __future__ import annotations

from truestep.events import CheckSkipped, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress


class BatchFirstMissing(SamplesMixed):
    """A recurrent layer or attention processes the samples of a batch as if they were a sequence.

    What it does
    ------------
    Repeats a call on a copy of the model in eval mode, twice: with the original batch, and with all samples replaced by
    one of them. The call is one of an evaluation, or else of the training. Reports the first recurrent or attention
    layer without ``batch_first`` that returns another result for that sample although its input for it is the same and
    lies along its first dimension.

    Why it matters
    --------------
    `nn.LSTM`, `nn.GRU`, `nn.MultiheadAttention` and the transformer layers expect (sequence, batch, features) by
    default. With (batch, sequence, features) they raise no error: time steps do not see each other, and the samples of
    a batch do. In the proof, where the label depends on an early part of the sequence, the accuracy is that of
    guessing. Every prediction also depends on the other samples in the batch.

    Example
    -------
    ::

        self.lstm = nn.LSTM(4, 16)          # takes (sequence, batch, features)
        out, _ = self.lstm(x)               # x is (batch, sequence, features)

    Fix
    ---
    Set the batch dimension::

        self.lstm = nn.LSTM(4, 16, batch_first=True)

    Known false alarms
    ------------------
    Attention between samples on purpose, built from `nn.MultiheadAttention` without ``batch_first`` and called with
    several positions at once, in a model without other attention. Not reported: models with attention both between and
    within samples, models trained in the order of a time series, layers called with one position, and transposed
    inputs.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """

    id = "batch-first-missing"
    since = "0.1"
    severity = Severity.ERROR
    explains = (
        "loss-at-chance",
        "parameters-without-effect",
    )
    account = "calls"
    confidence = Confidence.MEDIUM
    watches = (SamplesCompared, CheckSkipped, ModelCalled)
    needs = (SamplesCompared,)
    asks = "no layer reads samples as a sequence"
    causes = frozenset({"batch_first"})

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        name, length = run.model_name(event.model), event.before[1]
        self.report(
            event.site,
            f"{event.kind} processes the {event.samples} samples of a batch as a sequence",
            run=run,
            label=f"got {event.before}: {event.samples} samples of length {length}, but expects the sequence first",
            cost=f"on a copy of `{name}`, the {'result' if event.mixed else 'layer output'} for a sample "
            "changed with the other samples",
            help="create the layer with `batch_first=True`",
            unit="checks",
        )
