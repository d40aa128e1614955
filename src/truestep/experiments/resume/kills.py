"""The moments at which a run is killed, and their choice."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from truestep.experiments.instruments.state.trace import Trace
from truestep.experiments.running.outcome import Named


@dataclass(frozen=True, slots=True)
class Kill:
    """The moment at which a run is killed.

    Attributes:
        step: number of finished steps, of all optimizers together.
        moment: "step": right after this step, "backward": in the next backward pass, "write": during a write of a file.
        write: index of this write, from 0.
        path: path of the file.
    """

    step: int
    moment: str = "step"
    write: int | None = None
    path: str = ""

    @property
    def change(self) -> Named:
        """The change of the run that kills it."""
        step = self.step if self.write is None else None
        return "killed", {"step": step, "moment": self.moment, "write": self.write}

    def __str__(self) -> str:
        if self.write is not None:
            return f"while writing {Path(self.path).name}, after step {self.step}"
        return f"after step {self.step}" if self.moment == "step" else f"in step {self.step + 1}"


def plan(whole: Trace, kills: int, seed: int, during_save: bool) -> list[Kill]:
    """Choose the kills: spread over the steps after the first save, and one during a later save."""
    chance, last = random.Random(seed), len(whole.steps) - 1
    saved = [write.steps for write in whole.writes if write.steps]
    low = saved[0] + 1 if saved and saved[0] < last else 1
    later = [n for n, write in enumerate(whole.writes) if saved and saved[0] < write.steps <= last]
    within = later or [n for n, write in enumerate(whole.writes) if write.steps]
    planned: list[Kill] = []
    if during_save and kills > 1 and within:
        number = chance.choice(within)
        write = whole.writes[number]
        planned.append(Kill(write.steps, "write", number, write.path))
    left = kills - len(planned)
    edges = [low + (last + 1 - low) * number // left for number in range(left + 1)] if left else []
    for number in range(left):
        start, end = edges[number], max(edges[number] + 1, edges[number + 1])
        planned.append(Kill(min(last, chance.randrange(start, end)), ("step", "backward")[number % 2]))
    return sorted(planned, key=lambda kill: kill.step)
