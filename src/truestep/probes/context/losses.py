"""Facts about losses that several probes share."""

from __future__ import annotations

from typing import Any

from truestep.events import Event, Site

FOLLOWED = "truestep loss"
"""Key of the metadata of an operation before a loss that is followed."""


_MOST_COUNTS = 8
"""Sizes of batches of a model; with more, as of graphs, one of them tells nothing."""
_LEAST_CALLS = 3


class Followed:
    """Calls of a loss function at one line in one sampled step."""

    __slots__ = ("calls", "step")

    def __init__(self, step: int) -> None:
        self.step = step
        self.calls: list[Call] = []


class Call:
    """One call of a loss function at a line: did a backward pass go through its input?"""

    __slots__ = ("differentiated", "site")

    def __init__(self, site: Site | None) -> None:
        self.differentiated = False
        self.site = site


class Losses:
    """The latest loss, and the graphs of losses that stay in memory.

    Attributes:
        last: value of the latest loss; None if it was not read.
        source: facts of `LossRead` on the operations before the latest loss, by line of the backward pass.
        site: line of the backward pass from the latest loss.
        bad: True if a backward pass since the last step began from a loss that is not finite.
        every: True examines every loss (a plateau schedule may get it); False every other one.
        labels: number of labels of the latest loss, if they have one dimension, else 0.
        kept_by: variables that were found to keep the graphs of losses.
        retained: graphs that a backward pass retained, followed until they are freed.
        followed: latest call of a loss function in a sampled step, by line.
        counted: events on targets that a backward pass has shown to count, emitted at its end.
        columns: model to the rows of its results with one column, with the number of such calls at sampled steps.
    """

    def __init__(self) -> None:
        self.last: float | None = None
        self.source: dict[Site | None, dict[str, Any]] = {}
        self.site: Site | None = None
        self.bad = False
        self.every = False
        self.labels = 0
        self.kept_by: set[str] = set()
        self.retained: list[Any] = []
        self.followed: dict[int, Followed] = {}
        self.counted: list[Event] = []
        self.columns: dict[int, dict[int, int]] = {}

    def returned(self, model: int, result: Any, tensor: Any) -> None:
        """Record the rows of the results with one column of a call."""
        for part in result if type(result) in (tuple, list) else (result,):
            if type(part) is tensor and part.dim() == 2 and part.shape[1] == 1:
                counts, rows = self.columns.setdefault(model, {}), int(part.shape[0])
                if rows in counts or len(counts) <= _MOST_COUNTS:
                    counts[rows] = counts.get(rows, 0) + 1

    def are_calls(self, rows: int, table: tuple[int, ...]) -> bool:
        """Return True for a table of two sizes, if one model has returned columns of both: for a rollout and a batch.

        A rollout has more calls than the batches that are made of it.

        Args:
            rows: rows of a call that is compared with the table.
            table: the shape of the table.
        """
        if len(table) != 2 or table[1] < 2 or table[0] == table[1]:
            return False
        known = (counts for counts in self.columns.values() if len(counts) <= _MOST_COUNTS)
        return any(rows in one and one.get(table[1], 0) >= max(_LEAST_CALLS, one[rows]) for one in known)

    @staticmethod
    def met(node: Any) -> None:
        """Record that a backward pass goes through an operation."""
        for call in node.metadata.get(FOLLOWED, ()):
            call.differentiated = True

    def unknown(self) -> None:
        """Take all losses for differentiated: a pass that was not read may have gone through them."""
        for entry in self.followed.values():
            for call in entry.calls:
                call.differentiated = True
