"""What was measured of the speed-ups of a script."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep.experiments.tune.speedup_statistics import Judged


@dataclass(frozen=True, slots=True)
class Row:
    """What one speed-up, or several together, came to.

    Attributes:
        names: of the speed-ups.
        status: "gain", "slower", "no gain", "cannot tell", "saves memory", "losses differ", "failed" or
            "does not apply".
        judged: the ratio of times, with its interval; None where it was not timed.
        memory: peak, as a part of that of the script as it is; None where that is not known.
        once_s: seconds of work that is done once: compiling, reading all samples.
        apart: how far losses lie from those of the script as it is, as a part of their mean; None where not compared.
        note: why it failed.
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
    """What was measured on a script.

    Attributes:
        device: the type of device that its parameters are on.
        step_s: seconds of a step as it is.
        phases: seconds of each part of a step.
        peak_bytes: the most memory it held.
        rows: one for each speed-up that was tried, the best first.
        control: the script against itself.
        together: rows of speed-ups on top of each other, in the order in which they were tried.
        best: the names that gain together; empty where nothing gains.
        whole: all of the best against the script as it is; None where there are fewer than two.
        elsewhere: names that make sense on an accelerator only, and were not tried on this device.
        left_out: names for which the budget was too small.
        enough_s: seconds that would be about enough for these; 0 where none was left out.
        interrupted: whether Ctrl-C ended it.
    """

    device: str = "cpu"
    step_s: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    rows: list[Row] = field(default_factory=list)
    control: Row | None = None
    together: list[Row] = field(default_factory=list)
    best: tuple[str, ...] = ()
    whole: Row | None = None
    elsewhere: tuple[str, ...] = ()
    left_out: list[str] = field(default_factory=list)
    enough_s: float = 0.0
    interrupted: bool = False

    @property
    def tried(self) -> list[Row]:
        """The rows of speed-ups that were tried alone, and apply to the script."""
        return [row for row in self.rows if row.status != "does not apply"]
