"""Results of a watched run: findings, one verdict per rule, and the post-mortem of a crash if its cause is known."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truestep.events import Site

if TYPE_CHECKING:
    from truestep.timeline import Timeline


class Severity(enum.StrEnum):
    """Severity of a failure, once it is present."""

    ERROR = "error"
    """The trained result is wrong or worse."""
    WARNING = "warning"
    """The result may be right, but something was lost, wasted or left to chance."""
    SPEED = "speed"
    """Only time or memory is lost."""


class Confidence(enum.StrEnum):
    """Strength of the evidence. Reports show high and medium; low only on request."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Outcome(enum.StrEnum):
    """Result of a rule after a run."""

    FOUND = "found"
    CLEAR = "clear"
    NOT_OBSERVED = "not-observed"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of the user's code with a label: lower case, no full stop."""

    site: Site | None
    label: str
    of_remedy: bool = False
    """True for the place of the remedy, False for a line of the failure."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Number of times that a finding was seen; 0 of unit "syntax" if only the syntax shows it."""

    count: int = 1
    total: int | None = None
    """Number of units (steps by default) in which it could have been seen; None if unknown."""
    unit: str = "steps"
    first_step: int | None = None
    """The first step at which it was seen, counted from 0."""

    def __str__(self) -> str:
        if self.unit == "syntax":
            return "in the syntax"
        one = self.unit.removesuffix("es" if self.unit.endswith("passes") else "s")
        amount = f"{self.count} {self.unit if self.count != 1 else one}"
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
    """The failure as a fact: lower case, no full stop."""
    primary: Mark
    related: tuple[Mark, ...] = ()
    seen: Seen = field(default_factory=Seen)
    cost: str = ""
    """The measured cost, and how it was measured."""
    help: str = ""
    """The fix: one imperative sentence with the lines to write."""
    suppressed: bool = False
    """Whether a comment in the code or the configuration allows it."""
    rank: int | None = None
    """The rank that saw it, in runs of several processes."""
    explained_by: str = ""
    """Id of the rule with the finding that causes this one and under which it is listed; empty for a root cause."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one rule: found, clear, or not observed with a reason."""

    rule: str
    outcome: Outcome
    reason: str = ""
    """For not-observed: the events that the run lacked, such as "no scheduler"."""


@dataclass(frozen=True, slots=True)
class PostMortem:
    """Cause of the torch error that ended a run; made only if the cause is certain."""

    slug: str
    """The kind of crash, such as "modified-in-place"."""
    error: str
    """The error's type and the first line of its message."""
    message: str
    """The cause as a fact: lower case, no full stop."""
    primary: Mark
    """The user's line that failed."""
    related: tuple[Mark, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Further evidence, as pairs of a label and a text."""
    help: str = ""
    """The fix: one imperative sentence with the lines to write."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One account of a run: facts, with or without a finding."""

    account: str
    text: str
    """Facts for one line of a report: lower case, no full stop."""
    facts: dict[str, Any] = field(default_factory=dict, hash=False)
    """All facts of the account in types of JSON."""
    rules: tuple[str, ...] = ()
    """Rules with a finding that belongs to this account."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A classification loss that stayed at the level of random guessing."""

    classes: int
    loss: float
    """Mean of the later half of the loss values that were read."""
    step: int
    """Step of the last value."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Parts of a training that a run reached, apart from its steps; a report shows them before any clear verdict."""

    called: bool = True
    """Whether a model was called."""
    backward: bool = True
    """Whether a backward pass ran."""
    fed: bool = True
    """Whether an optimizer step or an update by hand may have used a gradient."""
    error: str = ""
    """Type and first line of the exception that ended the run."""
    processes: int = 0
    """Number of processes that the run started by multiprocessing and that were not supervised."""
    started: Site | None = None
    """Where the first of these processes was started."""
    chance: Chance | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that a report shows about one watched run."""

    script: str
    how: str
    """How the run ended, see `truestep.events.RunEnded.how`."""
    steps: int
    findings: tuple[Finding, ...] = ()
    """Most costly first; includes suppressed findings and consequences of others, marked as such."""
    verdicts: tuple[Verdict, ...] = ()
    internal_errors: tuple[str, ...] = ()
    """Tracebacks of probes and rules that failed; the training continued."""
    torch: str = ""
    ranks: int = 1
    missing_ranks: tuple[int, ...] = ()
    """Ranks without a record."""
    ranks_elsewhere: bool = False
    """True if a missing rank never came to the folder in which the records are collected, as on another host."""
    record: str = ""
    """Folder of the record, if one was requested."""
    post_mortem: PostMortem | None = None
    """Cause of the error that ended the run; None without such an error, or if its cause is unknown."""
    coverage: Coverage = field(default_factory=Coverage)
    ledger: tuple[LedgerLine, ...] = ()
    """Accounts of the run in a fixed order; those without facts are absent."""
    rank_facts: dict[str, Any] = field(default_factory=dict, hash=False)
    """Facts of one rank that are compared with those of the others, in types of JSON: by rule, and "group"."""
    timeline: Timeline | None = field(default=None, hash=False, compare=False)
    """Course of the run, of rank 0, for pictures; None unless they were requested."""

    def shown(self, *, least: Confidence = Confidence.MEDIUM) -> tuple[Finding, ...]:
        """Return the findings that a report shows, see `truestep.findings.shown`."""
        return shown(self.findings, least=least)


def shown(findings: tuple[Finding, ...], *, least: Confidence = Confidence.MEDIUM) -> tuple[Finding, ...]:
    """Return the findings that are not suppressed, not a consequence of others, and have at least this confidence."""
    order = list(Confidence)
    own = (f for f in findings if not f.suppressed and not f.explained_by)
    return tuple(f for f in own if order.index(f.confidence) <= order.index(least))
