from __future__ import annotations

import math
from dataclasses import dataclass, field

from truestep.events import Event, RowsEvaluated, RowsRead, RunEnded
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 5
_LEAST_AGAIN = 3
_LEAST_UNREAD = 0.2
"""Least part of a table that is never read."""
_LOG_CHANCE = -20.7
"""Logarithm of the largest probability that draws from the whole table leave it unread."""
_GROWTH = 1.1
"""Largest growth of the part that is read, as in a curriculum."""
_UNTIL = 0.4
"""Part of the steps of a run after which the last read must be."""


@dataclass(slots=True)
class _Reads:
    """Reads of one table, each with its step."""

    reads: list[tuple[int, RowsRead]] = field(default_factory=list)

    def repeats(self) -> bool:
        """Return True if all steps that follow a step that was read have its rows again, and there are several."""
        steps = {step for step, _ in self.reads}
        following = [read for step, read in self.reads if step - 1 in steps]
        twice = all(2 * read.read <= read.rows for read in following)
        return len(following) >= _LEAST_AGAIN and twice and all(read.again for read in following)

    def unread(self, steps: int) -> tuple[int, int] | None:
        """Return the first and the last place that is read if a part of the table is never read, else None."""
        drawn = [(step, read) for step, read in self.reads if not (read.in_order or read.again)]
        if len({step for step, _ in drawn}) < _LEAST_STEPS or drawn[-1][0] < _UNTIL * steps:
            return None
        least, most = min(read.least for _, read in drawn), max(read.most for _, read in drawn)
        span = most + 1 - least
        if any(read.changing or 2 * (read.most - read.least) < span for _, read in drawn):
            return None
        half = len(drawn) // 2
        if max(read.most for _, read in drawn[half:]) > _GROWTH * max(read.most for _, read in drawn[:half]) + 2:
            return None
        chance = sum(read.read * math.log(min(1.0, span / read.rows)) for _, read in drawn)
        rows = drawn[-1][1].rows
        return (least, most) if chance < _LOG_CHANCE and rows - span >= _LEAST_UNREAD * rows else None


class TrainingRowsNeverRead(Rule):
    """The training reads a part of its table only: always the same rows, or always its beginning.

    What it does
    ------------
    Looks up, at sampled steps, the rows of each batch of training in the tables that variables of the program hold:
    tensors, arrays, lists of samples such as a replay buffer. Reports a table if step after step indexes it again and
    gets the same rows, or if rows are drawn at random and none is ever of a fifth of the table or more, which draws
    from the whole table leave out with a probability below one in a billion.

    Why it matters
    --------------
    The rest of the data has no influence, and the model overfits the part that is read. In the proof, batches are
    drawn from the first 64 of 1,000 rows, and the accuracy on fresh rows is 0.74 instead of 0.96.

    Example
    -------
    ::

        for start in range(0, len(x), 64):
            index = torch.randperm(64)                      # the first 64 rows, in another order
            loss = F.cross_entropy(model(x[index]), y[index])

    Fix
    ---
    Draw from the whole table::

        for index in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[index]), y[index])

    Known false alarms
    ------------------
    Training on the beginning of a table on purpose, in a run that reads nothing of the rest. Not reported: a batch that
    is taken once and used in each step, parts of a table that an evaluation reads, tables read in order, buffers that
    are being filled, and training that goes from one part of a table to the next.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    """

    id = "training-rows-never-read"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (RowsRead, RowsEvaluated)
    needs = (RowsRead, FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[str, _Reads] = {}
        self._evaluated: set[str] = set()
        """Tables with rows that an evaluation read, and the training did not."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case RowsRead():
                self._tables.setdefault(event.table, _Reads()).reads.append((run.step, event))
            case RowsEvaluated() if event.inside and 2 * event.hits < event.inside:
                self._evaluated.add(event.trained)
            case _:
                pass

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished":
            return
        for table, reads in self._tables.items():
            if table in self._evaluated:
                continue
            last = reads.reads[-1][1]
            span = reads.unread(run.step)
            if reads.repeats():
                message = f"every step reads the same {last.read:,} of the {last.rows:,} rows of `{table}` again"
                label, cost = (
                    "the rows of the step before",
                    "the steps between two changes of the rows learn nothing new",
                )
            elif span is not None:
                message = (
                    f"the training reads only rows {span[0]:,} to {span[1]:,} of the {last.rows:,} rows of `{table}`"
                )
                label, cost = (
                    "batches from one part of the table",
                    f"{last.rows - span[1] + span[0] - 1:,} rows are never read",
                )
            else:
                continue
            draft = self.report(
                last.site,
                message,
                run=run,
                label=label,
                cost=cost,
                help=f"draw the indices of each batch from all of `{table}`",
                unit="steps read",
                key=table,
            )
            draft.count = draft.total = len(reads.reads)
            draft.first_step = reads.reads[0][0]
