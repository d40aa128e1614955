"""What the rules say: findings, and one verdict for every rule; and of what a run died, where that can be told."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from truestep.events import Site


class Severity(enum.StrEnum):
    """How bad a failure is when it is there."""

    ERROR = "error"
    """The trained result is wrong or worse."""
    WARNING = "warning"
    """The result may be right; something was lost, wasted or left to chance."""
    SPEED = "speed"
    """Only time or memory."""


class Confidence(enum.StrEnum):
    """How sure the evidence is. Reports show high and medium unless asked for all."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Outcome(enum.StrEnum):
    """What a rule came to after a run."""

    FOUND = "found"
    CLEAR = "clear"
    NOT_OBSERVED = "not-observed"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of the user's code and what happened there: lower case, no full stop."""

    site: Site | None
    label: str


@dataclass(frozen=True, slots=True)
class Seen:
    """How often a finding was seen."""

    count: int = 1
    total: int | None = None
    """Out of how many, where that is known."""
    unit: str = "steps"
    first_step: int | None = None
    """Number of the first step at which it was seen, counted from 0."""

    def __str__(self) -> str:
        amount = f"{self.count} {self.unit if self.count != 1 else self.unit.removesuffix('s')}"
        if self.total is not None and self.total >= self.count:
            amount = f"{self.count} of {self.total} {self.unit}"
        return amount if self.first_step is None else f"{amount}, first at step {self.first_step}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure at one place, with its evidence."""

    rule: str
    severity: Severity
    confidence: Confidence
    message: str
    """What happened: a fact, lower case, no full stop."""
    primary: Mark
    related: tuple[Mark, ...] = ()
    seen: Seen = field(default_factory=Seen)
    cost: str = ""
    """What it costs, measured, and how it was measured."""
    help: str = ""
    """One imperative sentence with the lines to write."""
    suppressed: bool = False
    """Whether a comment in the code or the configuration allows it."""
    rank: int | None = None
    """The rank that saw it, in runs of several processes."""
    explained_by: str = ""
    """The rule of the finding that it follows from, and is told under; empty where it stands for itself."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule came to: found, clear, or not observed and why."""

    rule: str
    outcome: Outcome
    reason: str = ""
    """For not-observed: what the run lacked, such as "no scheduler"."""


@dataclass(frozen=True, slots=True)
class PostMortem:
    """What an error of torch that ended a run does not say: the cause, where it is certain."""

    slug: str
    """The kind of death, such as "modified-in-place"."""
    error: str
    """The error's type and the first line of its message."""
    message: str
    """What happened: a fact, lower case, no full stop."""
    primary: Mark
    """The user's line that failed."""
    related: tuple[Mark, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """More evidence, each with a word that says what it is."""
    help: str = ""
    """One imperative sentence with the lines to write."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A classification loss that stayed where guessing is."""

    classes: int
    loss: float
    """Mean of the later half of the values that were read."""
    step: int
    """Step of the last one."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far a run came, beside its steps: what a report says before it calls anything clear."""

    called: bool = True
    """Whether a model was called."""
    backward: bool = True
    """Whether a backward pass ran."""
    error: str = ""
    """Type and first line of the exception that ended the run."""
    processes: int = 0
    """How many processes the run started by multiprocessing; they are not watched."""
    started: Site | None = None
    """Where it started the first of them."""
    chance: Chance | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """All there is to report about one watched run: what reports are made from."""

    script: str
    how: str
    """How the run ended, see `truestep.events.RunEnded.how`."""
    steps: int
    findings: tuple[Finding, ...] = ()
    """Suppressed ones and consequences of others included, marked as such; what costs most comes first."""
    verdicts: tuple[Verdict, ...] = ()
    internal_errors: tuple[str, ...] = ()
    """Tracebacks of probes and rules that failed; the training went on."""
    torch: str = ""
    ranks: int = 1
    missing_ranks: tuple[int, ...] = ()
    """Ranks whose record did not arrive."""
    record: str = ""
    """Folder of the record, where one was asked for."""
    post_mortem: PostMortem | None = None
    """Of what the run died, where it died of an error whose cause could be told."""
    coverage: Coverage = field(default_factory=Coverage)

    def shown(self, *, least: Confidence = Confidence.MEDIUM) -> tuple[Finding, ...]:
        """Findings to show: not suppressed, no consequences of others, and at least this sure."""
        return shown(self.findings, least=least)


def shown(findings: tuple[Finding, ...], *, least: Confidence = Confidence.MEDIUM) -> tuple[Finding, ...]:
    """Return the findings to show: not suppressed, no consequences of others, and at least this sure."""
    order = list(Confidence)
    own = (f for f in findings if not f.suppressed and not f.explained_by)
    return tuple(f for f in own if order.index(f.confidence) <= order.index(least))
