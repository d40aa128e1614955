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
    absent: ClassVar[str] = "no load_state_dict"
    site: Site | None = None
    model: int | None = None
    missing: int = 0
    unexpected: int = 0
