from __future__ import annotations

import re

from truestep.events import CheckpointLoaded, EmbeddingEvaluated, Event, RunEnded
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule

_LEAST, _LEAST_ROWS = 32, 8
_LEAST_SHARE = 0.2
"""Least share of the ids of an evaluation with an untrained row: fewer are rare words and new users."""
_MOST_FRESH = 0.02
"""Largest share of such ids in the training itself: it has read nearly all of its rows by then."""
_MOST_STILL = 0.05
"""Largest share of rows with their first values among those that the training has read: others are frozen."""
_POSITIONS = frozenset({"pos", "position", "positions", "positional", "wpe"})


class EmbeddingRowsUntrained(Rule):
    """An evaluation reads many rows of an embedding that the training never reads: they have random values.

    What it does
    ------------
    Keeps some first values of embeddings (``torch.nn.Embedding``) with the default random values of torch, and
    compares them in evaluations. Reports an embedding if, in the latest evaluation that was read, at least a fifth of
    the ids have a row with its first values (32 ids of 8 rows), while the training has changed the rows that it reads,
    and meets hardly any such row any more. Rows count as untrained if weight decay has only made them smaller.

    Why it matters
    --------------
    The model gets noise for these ids. In the proof, names that only the evaluation has are numbered too instead of
    being mapped to a row of zeros: the accuracy is 0.77 instead of 0.96.

    Example
    -------
    ::

        vocabulary = sorted({word for text in train_texts + test_texts for word in text})
        embedding = nn.Embedding(len(vocabulary), 64)       # rows of words that only `test_texts` has stay random

    Fix
    ---
    Number the words of the training only, and map others to a row that the training reads as well or that is zero::

        number = {word: place for place, word in enumerate(sorted(set(train_words)), 1)}
        ids = [number.get(word, 0) for word in text]
        embedding = nn.Embedding(len(number) + 1, 64, padding_idx=0)

    Known false alarms
    ------------------
    An evaluation of new users or items on purpose, as a baseline. Not reported: fewer ids, runs that load a
    checkpoint or end before they have met most of their ids, frozen embeddings, rows of padding, and embeddings with
    vectors from elsewhere, of another distribution than that of torch or on an accelerator, which are not observed.
    Positions beyond those of the training have low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """

    id = "embedding-rows-untrained"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    account = "parameters"
    watches = (EmbeddingEvaluated, CheckpointLoaded)
    needs = (EmbeddingEvaluated, FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[tuple[int, str], tuple[int, list[EmbeddingEvaluated]]] = {}
        """Model and embedding to the step of the latest evaluation, and its calls."""
        self._loaded = False

    def unobserved(self, run: Progress) -> str:
        unsure = all(_is_unsure(calls[-1]) for _, calls in self._latest.values())
        return super().unobserved(run) or ("the training still met new rows of embeddings" if unsure else "")

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, CheckpointLoaded):
            self._loaded = True
        elif isinstance(event, EmbeddingEvaluated):
            key = event.model, event.name
            step, calls = self._latest.get(key, (-1, []))
            self._latest[key] = run.step, [*(calls if step == run.step else []), event]

    def ended(self, event: RunEnded, run: Progress) -> None:
        for (model, name), (_, calls) in self._latest.items():
            reads, untrained = sum(one.reads for one in calls), sum(one.untrained for one in calls)
            rows, last = max(one.different for one in calls), calls[-1]
            few = untrained < max(_LEAST, _LEAST_SHARE * reads) or rows < _LEAST_ROWS
            if event.how != "finished" or self._loaded or few or _is_unsure(last):
                continue
            shown = name or run.model_name(model)
            positions = not _POSITIONS.isdisjoint(re.split(r"[\W_\d]+", shown.lower()))
            draft = self.report(
                last.site,
                f"{untrained:,} of {reads:,} ids of an evaluation have rows of `{shown}` that were never trained",
                run=run,
                label=f"reads {rows:,} of {last.rows:,} rows with their first random values",
                help="map ids that the training does not have to a row that it reads, or to `padding_idx`",
                cost=f"the model gets random values for {untrained / reads:.0%} of the ids",
                confidence=Confidence.LOW if positions else None,
                unit="ids",
                key=(model, name),
            )
            draft.count, draft.total = untrained, reads


def _is_unsure(event: EmbeddingEvaluated) -> bool:
    """Return True if the training had not read most of its rows, or does not change them."""
    return event.fresh > _MOST_FRESH or event.still > _MOST_STILL
