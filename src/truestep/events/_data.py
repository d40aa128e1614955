"""Passes over data loaders and their batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, RepeatKind, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderStarted(Event):
    """A pass over a DataLoader began (its ``__iter__`` was called)."""

    absent: ClassVar[str] = "no DataLoader"
    loader: int
    left: str = ""
    """Statement that always leaves the loop at the site in its first iteration: "return", "break", or "next" for
    ``next(iter(loader))`` instead of a loop; "unread" if the source is unreadable; empty without such a statement."""
    left_at: tuple[int, ...] = ()
    """Line, column, last line and last column of this statement."""
    body: tuple[int, ...] = ()
    """First and last line of the loop."""
    sums: bool = False
    """Whether the loop accumulates a sum over its iterations."""
    epoch: int = -1
    """Epoch of a sampler that shuffles by it, as set by ``set_epoch``; -1 for any other order."""
    overwrites: bool = False
    """Whether ``next(iter(loader))`` replaces the batch of the loop around it before that batch is read."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchDrawn(Event):
    """A DataLoader returned a batch."""

    absent: ClassVar[str] = "no DataLoader"
    repeats: ClassVar[RepeatKind] = "by value"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchRead(Event):
    """In the first passes over a loader, with gradients on, a batch on the CPU was read."""

    absent: ClassVar[str] = "no batch read on the CPU"
    loader: int
    place: int
    """Index of the batch in the pass, from 0."""
    fingerprint: str = ""
    """Equal for two batches with equal shapes and equal sampled values."""
    variety: int = 0
    """Number of different values among the sampled ones that are not integers."""
    labels: tuple[int, ...] = ()
    """First label, last label and number of different labels, if the batch has one label per sample in rising order."""
    labelled: bool = False
    """Whether the batch has one label per sample."""
    alike: int = 0
    """Number of samples, if all are equal and not constant and their labels differ; else 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderEnded(Event):
    """The loader returned its last batch (a loop left by ``break`` has no such event)."""

    absent: ClassVar[str] = "no DataLoader read to its end"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderUnread(Event):
    """Sent at the end of watching for each DataLoader that was built and never read."""

    absent: ClassVar[str] = "no DataLoader that was never read"
    name: str = "loader"
    samples: int | None = None
    """Number of samples, if the order is random; else None."""
    site: Site | None = None
    """Line that created it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderTimed(Event):
    """Sent at the end of watching for each DataLoader that the run waited for by at least one second in total."""

    absent: ClassVar[str] = "no DataLoader"
    loader: int
    passes: int
    drawn: int
    """Number of batches drawn in all passes."""
    waited_s: float
    """Seconds spent waiting for batches and iterators, after the very first batch."""
    starting_s: float
    """Seconds of this wait, at least, spent on restarting workers."""
    span_s: float
    """Seconds from the very first to the latest batch."""
    delayed_s: float = 0.0
    """Seconds in this span in which the training thread waited for a processor that other programs used."""
    crowded: bool = False
    """Whether this delay was a large part of the time, so that the loader's workers lacked processors as well."""
    beside: bool = False
    """Whether an accelerator may have worked while the run waited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgesRead(Event):
    """A model was called on a batch of graphs: its edges were compared with the graphs of its nodes."""

    absent: ClassVar[str] = "no model called on edges and the graphs of nodes"
    model: int
    graphs: int = 0
    nodes: int = 0
    edges: int = 0
    without: int = 0
    """Number of nodes behind those of all edges, if these are among as many nodes as the largest graph has; 0 if the
    edges join nodes of other graphs as well, and if they are few."""
    site: Site | None = None
