"""A variant of a script, and the outcome of its run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Named = tuple[str, Mapping[str, Any]]
"""The name of a change or of an instrument, with its arguments."""

LOSSES: Named = ("losses", {})
WATCHED: Named = ("watched", {})


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the script.

    Attributes:
        name: name for people.
        changes: names of `truestep.experiments.changes`, each with its arguments.
        instruments: names of `truestep.experiments.instruments`, each with its arguments.
        arguments: arguments of the script; None for those of the bench.
        environment: variables of its environment.
    """

    name: str
    changes: tuple[Named, ...] = ()
    instruments: tuple[Named, ...] = (LOSSES, WATCHED)
    arguments: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an optimizer.

    Attributes:
        optimizer: number of the optimizer, in the order of first steps.
        loss: mean of the losses backpropagated since the last step of any optimizer; None without one.
        norm: Euclidean norm of the gradients of its parameters, without the scale of fp16; None without gradients.
        seconds: time of the end of the step, since the first import of torch.
    """

    optimizer: int
    loss: float | None
    norm: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a variant.

    Attributes:
        variant: the variant.
        how: "finished", "stopped" after the requested steps, "exited", "crashed", "interrupted" or "killed".
        all_steps: steps of all optimizers, if losses were recorded.
        seconds: duration of the process.
        peak_bytes: peak memory: of an accelerator if it used one, else of the process; 0 if unknown.
        changes: counts of each change, by name.
        results: results of each instrument, by name.
        said: end of its output and errors.
        children: function that started training processes, which are not supervised; "" for none.
    """

    variant: Variant
    how: str
    all_steps: tuple[Step, ...] = ()
    seconds: float = 0.0
    peak_bytes: int = 0
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    said: str = ""
    children: str = ""

    @property
    def first(self) -> tuple[Step, ...]:
        """Steps of the first optimizer."""
        return tuple(step for step in self.all_steps if step.optimizer == 0)

    @property
    def losses(self) -> tuple[float | None, ...]:
        """Loss of each step of the first optimizer; None for a step without a backward pass."""
        return tuple(step.loss for step in self.first)

    @property
    def norms(self) -> tuple[float | None, ...]:
        """Norm of the gradients at each step of the first optimizer."""
        return tuple(step.norm for step in self.first)

    @property
    def steps(self) -> int:
        """Number of steps of the first optimizer."""
        return len(self.first)

    @property
    def findings(self) -> tuple[str, ...]:
        """Rule ids of the findings, if the run was supervised."""
        return tuple(self.results.get("watched", {}).get("findings", ()))

    def aims(self, rule: str) -> list[Any]:
        """Return the lines of the findings of a rule, in the form that changes accept."""
        aims: list[Any] = self.results.get("watched", {}).get("aims", {}).get(rule, [])
        return aims

    @property
    def last_line(self) -> str:
        """Last line of its output that names an exception, or else the last line; "" without output."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
        return (errors or lines or [""])[-1]

    @property
    def report(self) -> str:
        """Report on the run as text, if it was supervised."""
        return str(self.results.get("watched", {}).get("report", ""))


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run.

    Attributes:
        outcome: its outcome until then.
    """

    def __init__(self, outcome: RunOutcome) -> None:
        super().__init__()
        self.outcome = outcome


def read_outcome(variant: Variant, how: str, seconds: float, folder: Path, places: Mapping[str, str]) -> RunOutcome:
    """Read the outcome of a child from its results.

    Args:
        variant: the variant that it ran.
        how: "killed" or "interrupted" if it was ended from outside; else "".
        seconds: duration of the process.
        folder: folder with its results.
        places: texts to replace in its output: the path of the copy by the path of the original.
    """

    def here(text: str) -> str:
        for copy, original in places.items():
            text = text.replace(copy, original)
        return text

    said = (folder / "said.txt").read_text(encoding="utf-8", errors="replace")[-20_000:]
    ended: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        ended = json.loads(here((folder / "outcome.json").read_text(encoding="utf-8")))
    return RunOutcome(
        variant,
        how or ended.get("how", "crashed"),
        _steps(folder / "steps.jsonl"),
        seconds,
        ended.get("peak_bytes", 0),
        ended.get("changes", {}),
        ended.get("results", {}),
        here(said),
        ended.get("children", ""),
    )


def _steps(path: Path) -> tuple[Step, ...]:
    """Return the steps; a line that a killed child did not finish is left out."""
    found: list[Step] = []
    with contextlib.suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(Step(**json.loads(line)))
    return tuple(found)
