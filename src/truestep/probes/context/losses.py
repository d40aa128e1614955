"""Facts about losses that several probes share."""

from __future__ import annotations

from typing import Any

from truestep.events import Site


class Losses:
    """The latest loss, and the graphs of losses that stay in memory.

    Attributes:
        last: value of the latest loss; None if it was not read.
        source: operation before the latest loss, and True if that was scaled by a number, by line of the backward pass.
        site: line of the backward pass from the latest loss.
        bad: True if a backward pass since the last step began from a loss that is not finite.
        every: True examines every loss (a plateau schedule may get it); False every other one.
        labels: number of labels of the latest loss, if they have one dimension, else 0.
        kept_by: variables that were found to keep the graphs of losses.
        retained: graphs that a backward pass retained, followed until they are freed.
    """

    def __init__(self) -> None:
        self.last: float | None = None
        self.source: dict[Site | None, tuple[str, bool]] = {}
        self.site: Site | None = None
        self.bad = False
        self.every = False
        self.labels = 0
        self.kept_by: set[str] = set()
        self.retained: list[Any] = []
