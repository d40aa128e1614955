"""Results of `truestep tune`."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep.experiments.figures.speedup_statistics import Judged


@dataclass(frozen=True, slots=True)
class SpeedupRow:
    """Result of one speed-up, or of several together.

    Attributes:
        names: names of the speed-ups.
        status: "gain", "slower", "no gain", "cannot tell", "saves memory", "losses differ", "failed" or
            "does not apply".
        judged: ratio of times, with its interval; None if it was not timed.
        memory: peak memory over that of the unchanged script; None if unknown.
        once_s: seconds of one-time work: compiling, reading all samples.
        apart: relative deviation of the losses from those of the unchanged script; None if they were not compared.
        note: reason of a failure.
    """

    names: tuple[str, ...]
    status: str
    judged: Judged | None = None
    memory: float | None = None
    once_s: float = 0.0
    apart: float | None = None
    note: str = ""


@dataclass(slots=True)
class Tuned:
    """Result of the experiment on a script.

    Attributes:
        device: device type of its parameters.
        step_s: seconds of a step of the unchanged script.
        phases: seconds of each phase of a step.
        peak_bytes: peak memory of the unchanged script.
        rows: one row per speed-up that was tried, the best first.
        control: the script against itself.
        together: rows of speed-ups on top of each other, in the order in which they were tried.
        best: the names that gain together; empty if nothing gains.
        whole: all of `best` against the unchanged script; None if there are fewer than two.
        elsewhere: names of speed-ups for accelerators, which were not tried on this device.
        left_out: names that did not fit into the budget.
        enough_s: budget in seconds that would be about enough; 0 if nothing was left out.
        interrupted: True if Ctrl-C stopped it.
    """

    device: str = "cpu"
    step_s: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    rows: list[SpeedupRow] = field(default_factory=list)
    control: SpeedupRow | None = None
    together: list[SpeedupRow] = field(default_factory=list)
    best: tuple[str, ...] = ()
    whole: SpeedupRow | None = None
    elsewhere: tuple[str, ...] = ()
    left_out: list[str] = field(default_factory=list)
    enough_s: float = 0.0
    interrupted: bool = False

    @property
    def tried(self) -> list[SpeedupRow]:
        """Rows of the speed-ups that were tried alone and apply to the script."""
        return [row for row in self.rows if row.status != "does not apply"]
