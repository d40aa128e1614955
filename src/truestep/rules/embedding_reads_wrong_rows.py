from __future__ import annotations

import re

from truestep.events import EmbeddingRead, Event
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 3
_LEAST_ROWS = 8
_POSITIONS = frozenset({"pos", "position", "positions", "positional", "wpe"})


class EmbeddingReadsWrongRows(Rule):
    """An embedding is read at one row for all positions, or at the ids of another embedding.

    What it does
    ------------
    Reads the ids that embeddings (``torch.nn.Embedding``) get in training, at sampled steps. Reports an embedding with
    at least 8 rows that always gets one and the same id for 8 or more positions of a sequence: for ids without a
    dimension for the samples, in a batch of several, or if its name is ``pos``, ``position``, ``wpe`` or the like.

    Reports two embeddings of different sizes that always get the same ids, at least 8 different ones, if ``forward``
    reads another integer argument nowhere, or a column of one, and its numbers fill one of the two; or if a further
    embedding has the size of the larger one and gets other ids, which no embedding of the smaller size gets.

    Why it matters
    --------------
    The part of the input that the ids stand for has no influence: a model without positions sees a bag of words, and
    one that reads items at the numbers of users predicts the same for all items. In the first proof, a model that must
    find the word at a position reaches an accuracy of 0.25 instead of 1.00; in the second, the mean squared
    error of predicted ratings is 3.9 instead of 0.36.

    Example
    -------
    ::

        positions = torch.zeros(tokens.shape[1], dtype=torch.long)
        x = self.words(tokens) + self.positions(positions)      # position 0 everywhere

        score = (self.users(user) * self.items(user)).sum(1)    # `item` is not read

    Fix
    ---
    Pass the ids that the rows stand for::

        positions = torch.arange(tokens.shape[1])
        x = self.words(tokens) + self.positions(positions)

        score = (self.users(user) * self.items(item)).sum(1)

    Known false alarms
    ------------------
    A model that reads one row of a large table at all positions on purpose, for all samples alike. Not reported:
    one id for each sample (a task, a language, a class), tables of less than 8 rows, ids that differ at any sampled
    step, tables of equal size that share their ids, and tables read by indexing or ``F.embedding``, which are not
    observed.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """

    id = "embedding-reads-wrong-rows"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (EmbeddingRead,)
    needs = (EmbeddingRead,)

    def __init__(self) -> None:
        super().__init__()
        self._alike: dict[tuple[int, str], int] = {}
        """Model and embedding to the number of reads at the same row; -1 after any other read."""
        self._rows: dict[tuple[int, str], int] = {}
        self._twins: dict[tuple[int, str], int] = {}
        """The same for reads at the ids of another embedding."""
        self._unread: dict[tuple[int, str], str] = {}
        """Embedding that is read at the ids of another one to the argument that nothing reads."""
        self._begun: dict[tuple[int, str], int] = {}
        """Step of the first read."""

    def suspected(self) -> bool:
        few = [*self._alike.values(), *self._twins.values()]
        return super().suspected() or any(0 < count < _LEAST_STEPS for count in few)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, EmbeddingRead):
            self._begun.setdefault((event.model, event.name), run.step)
            self._observe_one_row(event, run)
            self._observe_twins(event, run)

    def _observe_one_row(self, event: EmbeddingRead, run: Progress) -> None:
        key, name = (event.model, event.name), event.name or run.model_name(event.model)
        at_positions = event.positions or not _POSITIONS.isdisjoint(re.split(r"[\W_\d]+", name.lower()))
        enough = _LEAST_ROWS <= event.length <= event.rows
        same = event.row is not None and event.row == self._rows.setdefault(key, event.row)
        self._alike[key] = count = _counted(self._alike.get(key, 0), same and at_positions and enough)
        if count < 0:
            self.withdraw(("row", key))
        if count >= _LEAST_STEPS:
            draft = self.report(
                event.site,
                f"`{name}` reads row {event.row} at all positions",
                run=run,
                label=f"gets the id {event.row} {event.length} times",
                help="pass the number of each position, such as `torch.arange(length)`",
                cost=f"the other {event.rows - 1:,} rows are never read, and positions have no influence",
                confidence=Confidence.HIGH if event.positions else Confidence.MEDIUM,
                unit="steps read",
                key=("row", key),
            )
            draft.count, draft.total, draft.first_step = count, count, self._begun[key]

    def _observe_twins(self, event: EmbeddingRead, run: Progress) -> None:
        key = event.model, event.name
        self._twins[key] = count = _counted(self._twins.get(key, 0), bool(event.twin))
        if count < 0:
            self.withdraw(("twin", event.model, self._unread.get(key, "")))
        if count >= _LEAST_STEPS:
            self._unread[key] = event.unread or event.beside
            others = f"nothing reads `{event.unread}`"
            if event.beside:
                others = f"`{event.beside}` of equal size is read at others"
            meant = f"the ids of `{event.beside}`" if event.beside else f"`{event.unread}`"
            draft = self.report(
                event.site,
                f"`{event.name}` is read at the ids of `{event.twin}`, and {others}",
                run=run,
                label=f"gets the same ids as `{event.twin}`",
                help=f"pass {meant} to `{event.name}`",
                cost=f"the {event.rows:,} rows of `{event.name}` are learned for the wrong ids",
                confidence=Confidence.MEDIUM,
                unit="steps read",
                key=("twin", event.model, event.unread or event.beside),
            )
            draft.count, draft.total, draft.first_step = count, count, self._begun[key]


def _counted(before: int, bad: bool) -> int:
    """Return the number of reads of one kind; -1 after any other read."""
    return before + 1 if bad and before >= 0 else -1
