"""Judged on a copy of the model: a result that depends on the other samples, and the first layer that makes it so."""

from __future__ import annotations

from truestep.events import CheckSkipped, ModelCalled, SamplesCompared
from truestep.findings import Confidence, Severity
from truestep.rules._mixing import SamplesMixed
from truestep.rules._rule import Progress


class BatchFirstMissing(SamplesMixed):
    """A recurrent layer or attention goes over the samples of a batch as if they were a sequence.

    What it does
    ------------
    With ``--active``, repeats an evaluation call on a copy of the model, twice: with the batch, and with all
    samples but the last replaced by the last. Reports the first recurrent layer or attention without
    ``batch_first`` whose result for the last sample differs, though its input for that sample does not and lies
    along its first dimension.

    Why it matters
    --------------
    `nn.LSTM`, `nn.GRU`, `nn.MultiheadAttention` and the transformer layers take (sequence, batch, features) by
    default. Given (batch, sequence, features) they raise nothing: each time step is alone, and the samples of a
    batch see each other. In the proof, where the label depends on an early part of the sequence, the accuracy is
    that of guessing; every prediction also depends on what else is in the batch.

    Example
    -------
    ::

        self.lstm = nn.LSTM(4, 16)          # takes (sequence, batch, features)
        out, _ = self.lstm(x)               # x is (batch, sequence, features)

    Fix
    ---
    Say which dimension the batch is::

        self.lstm = nn.LSTM(4, 16, batch_first=True)

    Known false alarms
    ------------------
    Attention between samples on purpose, built of `nn.MultiheadAttention` without ``batch_first`` and given several
    positions at once, in a model without other attention. Quiet: attention between samples beside attention within
    them, models trained in the order of a time series, layers given one position, and inputs that were transposed.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """

    id = "batch-first-missing"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    watches = (SamplesCompared, CheckSkipped, ModelCalled)
    needs = (SamplesCompared,)
    cause = "batch_first"

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        name, length = run.model_name(event.model), event.before[1]
        self.report(
            event.site,
            f"{event.kind} runs over the {event.samples} samples of a batch as over a sequence",
            run=run,
            label=f"given {event.before}: {event.samples} samples of length {length}, the sequence expected first",
            cost=f"on a copy of `{name}`, {'its result' if event.mixed else 'what the layer gives'} for a sample "
            "changed with the other samples",
            help="make the layer with `batch_first=True`",
            unit="checks",
        )
