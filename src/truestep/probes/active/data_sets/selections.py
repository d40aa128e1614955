"""Check: masks or indices that select the rows of a training, a validation and a test have rows in common.

Variables of the program are looked at in the first backward pass of each line: later ones may be of another fold.
"""

from __future__ import annotations

import itertools
import re
from types import FrameType
from typing import Any

from truestep.events import SelectionsShared, Site
from truestep.probes.context.guards import guards
from truestep.probes.context.scene import Scene
from truestep.probes.variables.selected import are_of_equal_tables, are_taken_apart, is_used, selected_from
from truestep.probes.variables.selections import Selection, families, held_selections, of_rows, places_of

_MOST_LINES = 4
_TRAINING = frozenset({"train", "training", "tr", "trn"})
_ORDER = ("train", "validation", "test")
_WORD = re.compile(r"[^\W_\d]+")


class Selections:
    """Emits `SelectionsShared`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._met: set[Site | None] = set()
        self._told: set[tuple[str, str]] = set()

    def differentiated(self, site: Site | None, frame: FrameType | None) -> None:
        """Handle a backward pass at a sampled step.

        Args:
            site: its line.
            frame: the frame that called it.
        """
        if site in self._met or len(self._met) >= _MOST_LINES or frame is None:
            return
        self._met.add(site)
        scene = self._scene
        with self._aside(), scene.sampling.timed(None):
            frames = scene.sites.users(frame)
            for holder, held in families(scene, frames):
                held.sort(key=lambda one: _ORDER.index(one.part))
                for one, other in itertools.combinations(held, 2):
                    if one.part != other.part and one.also == other.also and one.value is not other.value:
                        self._compare(one, other, holder, frames)

    def _compare(self, one: Selection, other: Selection, holder: FrameType, frames: list[FrameType]) -> None:
        torch = self._scene.torch
        (first, length), (second, others) = (places_of(torch, each.value) for each in (one, other))
        if first is None or second is None or length != others or (one.name, other.name) in self._told:
            return
        if length in (len(first), len(second)):
            return
        shared = first[torch.isin(first, second)]
        if not len(shared) or not self._are_of_the_same(one, other, holder, masks=length > 0):
            return
        if 0 == int(first[0]) == int(second[0]) and int(shared[-1]) < len(shared):
            return  # stretches from the first row: the later one is scored behind the other
        apart = [part[~torch.isin(part, shared)] for part in (first, second)]
        if any(len(rest) and self._is_held(rest, length, frames) for rest in apart):
            return
        self._told.add((one.name, other.name))
        self._scene.tell(
            SelectionsShared,
            one=one.name,
            other=other.name,
            parts=(one.part, other.part),
            rows=(len(first), len(second)),
            shared=len(shared),
            stretches=1 + int((shared.diff() > 1).sum()),
            chosen=self._chosen(frames),
            site=other.made,
            made=one.made,
        )

    def _are_of_the_same(self, one: Selection, other: Selection, holder: FrameType, *, masks: bool) -> bool:
        """Return True if two selections are used, of the same rows, and neither is taken out of the other."""
        paths = [holder.f_code.co_filename]
        if not is_used(paths, other.written) or (one.part == _ORDER[0] and not is_used(paths, one.written)):
            return False
        if are_taken_apart(paths, one.written, other.written) or are_taken_apart(paths, one.name, other.name):
            return False
        if not are_of_equal_tables(holder, {one.written, one.name}, {other.written, other.name}):
            return False
        if not masks and not (of_rows(one) and of_rows(other)):
            return False
        return masks or not selected_from(holder, one.written).isdisjoint(selected_from(holder, other.written))

    def _is_held(self, rows: Any, length: int, frames: list[FrameType]) -> bool:
        """Return True if a variable holds exactly these rows as a selection, by any name."""
        torch = self._scene.torch
        for value in held_selections(self._scene, frames):
            found, mask = places_of(torch, value)
            if found is not None and (mask > 0) == (length > 0) and len(found) == len(rows):
                if bool((found == rows).all()):
                    return True
        return False

    def _chosen(self, frames: list[FrameType]) -> bool:
        """Return True if a branch of the program keeps the best figure so far of something else than the training."""
        files = [frame.f_code.co_filename for frame in frames] + self._scene.sites.own_files()
        found = (guard for path in dict.fromkeys(files) for _, _, guard in guards(path))
        return any(_TRAINING.isdisjoint(_WORD.findall(f"{one.name} {one.best}".lower())) for one in found)
