"""Rows that models read of their embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingRead(Event):
    """At a sampled step, a model in training read rows of an embedding (`torch.nn.Embedding`)."""

    absent: ClassVar[str] = "no embedding was read in training"
    costly: ClassVar[bool] = True
    model: int
    name: str = ""
    """Name of the embedding in the model; empty for a model that is one."""
    rows: int
    """Number of rows of its table."""
    length: int = 1
    """Last size of the ids."""
    row: int | None = None
    """The one row that all ids are; None for several."""
    positions: bool = False
    """Whether the ids are one row of the positions of a sequence, which all samples of the batch share."""
    twin: str = ""
    """Embedding of another size that the call read at the same ids, if one of the two following fields shows others."""
    unread: str = ""
    """Integer argument, or column of one, that ``forward`` does not read, with numbers that fit this embedding."""
    beside: str = ""
    """Embedding of equal size that the call read at other ids, which no embedding of the size of the twin got."""
    site: Site | None = None
    """Line that called the embedding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingEvaluated(Event):
    """A model read rows of an embedding without gradients; the embedding began with the default random values."""

    absent: ClassVar[str] = "no evaluation of an embedding that began with the random values of torch"
    costly: ClassVar[bool] = True
    model: int
    name: str = ""
    """Name of the embedding in the model; empty for a model that is one."""
    rows: int
    """Number of rows of its table."""
    reads: int
    """Number of ids, without those of padding."""
    untrained: int = 0
    """Number of ids with a row that has its first values, and that no sampled step of the training read."""
    different: int = 0
    """Number of these rows."""
    fresh: float = 1.0
    """Share of the ids of the latest sampled step of training with a row that no step before had read or changed."""
    still: float = 0.0
    """Share of the rows read in sampled steps of training that have their first values."""
    site: Site | None = None
    """Line that called the embedding."""
