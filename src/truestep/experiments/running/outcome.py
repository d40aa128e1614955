"""What a variant of a script is, and what it did."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

Named = tuple[str, Mapping[str, Any]]
"""The name of a change or of an instrument, with its arguments."""

LOSSES: Named = ("losses", {})
WATCHED: Named = ("watched", {})


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the script.

    Attributes:
        name: for people.
        changes: names of `truestep.experiments.changes`, each with its arguments.
        instruments: names of `truestep.experiments.instruments`, each with its arguments.
        arguments: of the script; None for those of the bench.
    """

    name: str
    changes: tuple[Named, ...] = ()
    instruments: tuple[Named, ...] = (LOSSES, WATCHED)
    arguments: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an optimizer.

    Attributes:
        optimizer: its number, in the order of their first steps.
        loss: mean of the losses that went backward since the last step of any; None where there was none.
        norm: Euclidean norm of the gradients that it steps on, out of the scale of fp16; None where it has none.
        seconds: since the first import of torch, when it was over.
    """

    optimizer: int
    loss: float | None
    norm: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a variant did.

    Attributes:
        variant: which one.
        how: "finished", "stopped" after the steps asked for, "exited", "crashed", "interrupted", "killed".
        all_steps: of every optimizer, where losses were recorded.
        seconds: of the process.
        peak_bytes: the most memory it held: of an accelerator where it used one, else of the process; 0 if unknown.
        changes: what each change counted, by name.
        told: what each instrument says, by name.
        said: the end of what it wrote, output and errors.
        children: what started processes that train for it, which are not followed; "" for nothing.
    """

    variant: Variant
    how: str
    all_steps: tuple[Step, ...] = ()
    seconds: float = 0.0
    peak_bytes: int = 0
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    said: str = ""
    children: str = ""

    @property
    def first(self) -> tuple[Step, ...]:
        """Steps of the first optimizer."""
        return tuple(step for step in self.all_steps if step.optimizer == 0)

    @property
    def losses(self) -> tuple[float | None, ...]:
        """The loss of each step of the first optimizer; None where a step had no backward pass."""
        return tuple(step.loss for step in self.first)

    @property
    def norms(self) -> tuple[float | None, ...]:
        """The norm of the gradients at each step of the first optimizer."""
        return tuple(step.norm for step in self.first)

    @property
    def steps(self) -> int:
        """How many steps the first optimizer took."""
        return len(self.first)

    @property
    def seconds_per_step(self) -> float | None:
        """Median from one step of the first optimizer to the next, the first tenth left out; None below three steps."""
        times = [step.seconds for step in self.first]
        times = times[len(times) // 10 :]
        return median(after - before for before, after in pairwise(times)) if len(times) > 2 else None

    @property
    def findings(self) -> tuple[str, ...]:
        """The rule of each failure that was found, where it was watched."""
        return tuple(self.told.get("watched", {}).get("findings", ()))

    def aims(self, rule: str) -> list[Any]:
        """Return the lines of what was found by a rule, as changes take them."""
        aims: list[Any] = self.told.get("watched", {}).get("aims", {}).get(rule, [])
        return aims

    @property
    def last_line(self) -> str:
        """Last line of its output that names an exception, or else the last line; "" without output."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
        return (errors or lines or [""])[-1]

    @property
    def report(self) -> str:
        """On the run, as text, where it was watched."""
        return str(self.told.get("watched", {}).get("report", ""))


class Interrupted(KeyboardInterrupt):
    """A person ended a run.

    Attributes:
        outcome: what it did until then.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def read_outcome(variant: Variant, how: str, seconds: float, results: Path, places: Mapping[str, str]) -> Outcome:
    """Read what a child left in a folder.

    Args:
        variant: what it ran.
        how: "killed" where it was ended; "" where it ended by itself.
        seconds: of the process.
        results: the folder.
        places: texts that stand for others in what it says: the copy of a folder for the folder.
    """

    def here(text: str) -> str:
        for copy, original in places.items():
            text = text.replace(copy, original)
        return text

    said = (results / "said.txt").read_text(encoding="utf-8", errors="replace")[-20_000:]
    told: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        told = json.loads(here((results / "outcome.json").read_text(encoding="utf-8")))
    return Outcome(
        variant,
        how or told.get("how", "crashed"),
        _steps(results / "steps.jsonl"),
        seconds,
        told.get("peak_bytes", 0),
        told.get("changes", {}),
        told.get("told", {}),
        here(said),
        told.get("children", ""),
    )


def _steps(path: Path) -> tuple[Step, ...]:
    """Return the steps; the line that a killed child was writing is left out."""
    found: list[Step] = []
    with contextlib.suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(Step(**json.loads(line)))
    return tuple(found)
