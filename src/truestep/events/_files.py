"""Checkpoints and states, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointSaved(Event):
    absent: ClassVar[str] = "no checkpoint"
    site: Site | None = None
    holds: tuple[str, ...] = ()
    """Top-level keys or the kind of the object."""
    whole_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointLoaded(Event):
    absent: ClassVar[str] = "no checkpoint loaded"
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateLoaded(Event):
    """A module was given a state dict."""

    absent: ClassVar[str] = "no load_state_dict"
    site: Site | None = None
    model: int | None = None
    missing: int = 0
    unexpected: int = 0
    module: int = 0
    """Number of the module that was given it, also where it was never called."""
    unread: bool = False
    """Whether keys were allowed to fall away, and the user's line throws the report on them away."""
    state: int = 0
    """Where unread: the number of the state dict, the same for a copy of the dict."""
    offered: int = 0
    """Where unread: tensors in the state dict."""
    matched: int = 0
    """Where unread: parameters of the module that were loaded."""
    dropped: int = 0
    """Where unread: parameters of the module that were not."""
    added: str = ""
    """Where unread: what stands in the names of the state dict, and not in those of the missing parameters."""
    lacking: str = ""
    """Where unread: what stands in front of the names of the missing parameters, and not in those of the state dict."""
    inner: str = ""
    """Where unread: the key under which the dict holds another one that has the missing parameters."""
    found: int = 0
    """Where unread: missing parameters that are there, in their shapes, once their names are read like this."""
    taken: Site | None = None
    """Where `state_dict()` was called, if all tensors given are the module's own, and have changed since that call."""
    taken_steps: int = 0
    """How many optimizer steps lie between the two, or between this and its latest load, to one significant digit."""
    overwritten: bool = False
    """Whether the module was given other weights between the two."""
