"""The check compares results on a copy; whether lengths differ between batches shows in the inputs that are read."""

from __future__ import annotations

from truestep.events import Event, InputsRead, PaddingCompared
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_MOST_LENGTHS = 8
_LEAST_LENGTHS = 2
"""Batches must have different lengths: padding to one length is the same for every sample."""


class PaddingChangesOutput(Rule):
    """Padding changes a model's result: a sample gets another one beside longer samples than alone.

    What it does
    ------------
    Looks for batches of token sequences, or of series of vectors, with samples that end in padding of different
    lengths. A copy of the model runs the samples with much padding again without a part of it, as in a batch of shorter
    samples. Reports a model if a result changes by 5 % of the difference between samples or more, and if the lengths
    of its batches differ. Of an encoder of tokens with a result for each position, the states of samples with padding
    count, the ``padding_idx`` of its embedding, if a loss depends on them.

    Why it matters
    --------------
    The average or the last state of a padded sequence is that of the padding too, and attention without a mask reads
    it. How much there is depends on the longest sample that is drawn for the batch. So the model learns with noise,
    and its result for one sample alone is another one. In the proof, a mean over embeddings with padding has an error
    of 0.34 on held-out sequences that come one at a time, and 0.0001 with a mask.

    Example
    -------
    ::

        tokens = pad_sequence(samples, batch_first=True)
        features = self.embed(tokens).mean(1)

    Fix
    ---
    Leave padding out, by a mask, ``pack_padded_sequence``, or ``src_key_padding_mask`` of a transformer::

        real = (tokens != PADDING).unsqueeze(2)
        features = (self.embed(tokens) * real).sum(1) / real.sum(1)

    Known false alarms
    ------------------
    Convolutions over padded words with the largest value over time (Kim, 2014) are so by convention, and reported with
    low confidence. Not reported: batches that are padded to one length, models that return other results for the same
    batch, sequences in the first dimension, results for each position (taggers, CTC), states of series of vectors or
    that no loss depends on, padding with a token that is also a word, and effects at the border of a convolution
    below 5 %.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
    """

    id = "padding-changes-output"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "calls"
    watches = (InputsRead, PaddingCompared)
    needs = (PaddingCompared,)
    asks = "padding has no influence"

    def __init__(self) -> None:
        super().__init__()
        self._lengths: dict[int, set[int]] = {}
        """Model to the lengths of its batches."""
        self._changed: dict[int, PaddingCompared] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case InputsRead(shape=(_, length, *_), argument=""):
                if len(lengths := self._lengths.setdefault(event.model, set())) < _MOST_LENGTHS:
                    lengths.add(length)
            case PaddingCompared():
                self._lengths.setdefault(event.model, set()).add(event.length)
                if event.changes:
                    self._changed.setdefault(event.model, event)
            case _:
                return
        found, lengths = self._changed.get(event.model), self._lengths.get(event.model, set())
        if found is not None and len(lengths) >= _LEAST_LENGTHS:
            self._found(found, run)

    def _found(self, event: PaddingCompared, run: Progress) -> None:
        name = run.model_name(event.model)
        draft = self.report(
            event.site,
            f"the result of `{name}` for a sample depends on its padding",
            run=run,
            label=f"{event.trimmed} of {event.length} positions of padding left out: other "
            + ("results" if event.state is None else "states"),
            help=f"leave padding out of `{event.argument}` by a mask, or pack the sequences",
            confidence=Confidence.LOW if event.pooled else Confidence.MEDIUM,
            unit="checks",
            key=event.model,
        )
        draft.cost = (
            f"the results of {event.samples} samples change by up to {event.share:.0%} of the difference between"
            " samples: a sample has another result in a batch of other lengths"
        )
        draft.count = draft.total = 1
