"""Base class of rules: one failure with its manual page and its detector.

A rule reads only events, keeps small state keyed by numbers, and reports one finding per site. Its class docstring is
its manual page; `Rule.__init_subclass__` checks the form and registers the rule.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from truestep import events as ev
from truestep.accounts import Accounts
from truestep.events import Event, Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Verdict
from truestep.rules._conditions import Condition
from truestep.syntax import Program, Suspicion

HEADINGS = ("What it does", "Why it matters", "Example", "Fix", "Known false alarms", "References")


class Progress(Accounts):
    """Position of a run, its objects and its accounts. Filled by the watching session or by a replay.

    Args:
        met: kinds of events seen so far.
        step: number of the current step, counted from 0, which equals the number of completed updates.
    """

    def __init__(self, met: Iterable[type[Event]] = (), step: int = 0) -> None:
        super().__init__()
        self.met = set(met)
        self.step = step
        self.how: str = ""
        """`RunEnded.how`; empty before the end."""

    def note(self, event: Event) -> None:
        """Register an event and enter it into the accounts (called before the rules see the event)."""
        self.met.add(type(event))
        super().note(event)
        if isinstance(event, ev.RunEnded):
            self.how = event.how

    def advance(self, event: Event) -> None:
        """Count a step if the event ended one (called after the rules saw the event)."""
        if isinstance(event, ev.OptimizerStepped | ev.HandStepped):
            self.step += 1


@dataclass(slots=True)
class Draft:
    """A finding under construction: one per site and rule, counted during the run."""

    rule: str
    severity: Severity
    confidence: Confidence
    message: str
    primary: Mark
    related: tuple[Mark, ...]
    cost: str
    help: str
    unit: str
    first_step: int | None
    count: int = 1
    total: int | None = None

    def finding(self, steps: int) -> Finding:
        total = self.total if self.total is not None or self.unit != "steps" else steps
        seen = Seen(count=self.count, total=total, unit=self.unit, first_step=self.first_step)
        return Finding(
            rule=self.rule,
            severity=self.severity,
            confidence=self.confidence,
            message=self.message,
            primary=self.primary,
            related=self.related,
            seen=seen,
            cost=self.cost,
            help=self.help,
        )


class Rule(ABC):
    """One silent failure.

    Subclasses define a manual page as docstring (see `HEADINGS`), the class attributes below and `observe`. They may
    override `again`, which counts events of repeated steps that are not shown one by one, and `ended`, for verdicts
    about whole runs.
    """

    registry: ClassVar[dict[str, type[Rule]]] = {}

    id: ClassVar[str]
    """Kebab-case name of the bad pattern; the module and the class use the same words."""
    since: ClassVar[str]
    severity: ClassVar[Severity]
    account: ClassVar[str]
    """Name of the account that the failure belongs to: a finding marks its line of the ledger."""
    confidence: ClassVar[Confidence] = Confidence.HIGH
    watches: ClassVar[tuple[type[Event], ...]]
    """Kinds of events that are passed to `observe`."""
    needs: ClassVar[tuple[type[Event] | Condition, ...]]
    """Kinds of events and conditions that the rule requires: if a run lacks one, the verdict is not-observed."""
    asks: ClassVar[str] = ""
    """The statement that holds if a check on a copy passes, for `truestep check`; empty without such a check."""
    explains: ClassVar[tuple[str, ...]] = ()
    """Rules that detect the same failure from another side: their findings are listed under this rule's."""
    leads_to: ClassVar[tuple[str, ...]] = ()
    """Rules for later effects of this failure: their findings are listed under this rule's unless they came earlier."""
    missing_call: ClassVar[str] = ""
    """Method that is not called where the failure occurs, such as "zero_grad"; a statement that only names it without
    parentheses is added to the finding."""
    costs_resources: ClassVar[bool] = False
    """True if the failure costs time or memory although its severity is not SPEED."""
    cost_between_steps: ClassVar[bool] = False
    """True if the time passes between the steps, as in an evaluation: a median step time leaves it out."""
    preview: ClassVar[bool] = False
    in_runs: ClassVar[bool] = True
    """False for rules that read the syntax only: they have no verdict in a run."""

    def __init__(self) -> None:
        self._drafts: dict[object, Draft] = {}
        self._first_seen: dict[object, int] = {}
        """Key of a finding to the step at which `seen_before` was first asked for it."""
        self.fired: list[Draft] = []
        """Drafts reported or counted since the session last emptied this list."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        words = cls.__module__.rpartition(".")[2]
        if words.startswith("_"):  # a base class of several rules
            return
        expected = words.replace("_", "-")
        if cls.id != expected:
            raise TypeError(f"rule {cls.id!r} lives in module {words!r}: name it {expected!r}")
        if cls.__name__.lower() != words.replace("_", ""):
            raise TypeError(f"rule {cls.id!r} has class {cls.__name__}: use the words of its id")
        page = inspect.cleandoc(cls.__doc__ or "")
        missing = [heading for heading in HEADINGS if not re.search(rf"^{heading}$\n^-+$", page, re.MULTILINE)]
        if missing:
            raise TypeError(f"rule {cls.id!r} has no heading {', '.join(missing)} in its docstring")
        Rule.registry[cls.id] = cls

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        """Yield the failures that the syntax of a file shows, for `truestep lint`; no failure by default."""
        return iter(())

    @classmethod
    def reads_syntax(cls) -> bool:
        """Return True if the rule overrides `inspect`, and `truestep lint` reports it."""
        return cls.inspect.__func__ is not Rule.inspect.__func__  # type: ignore[attr-defined]

    @abstractmethod
    def observe(self, event: Event, run: Progress) -> None:
        """Read one event and report the failure if the event shows it."""

    def again(self, event: Event, times: int) -> None:
        """Count an event that came ``times`` more times, in a sequence that was shown before."""

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        """Report failures that only a complete run shows."""

    def unobserved(self, run: Progress) -> str:
        """Return the reason why the run could not show this failure; empty if it could."""
        return next((need.absent for need in self.needs if not _holds(need, run)), "")

    def suspected(self) -> bool:
        """Return True if the failure was seen, but too seldom for a finding: the rule is then not clear."""
        return bool(self._drafts or self._first_seen)

    def seen_before(self, key: object, run: Progress) -> bool:
        """Return True if a failure was seen at an earlier step too: once can be a coincidence.

        The finding with this key then counts both steps.
        """
        return self._first_seen.setdefault(key, run.step) != run.step

    def report(
        self,
        site: Site | None,
        message: str,
        *,
        run: Progress,
        label: str,
        help: str,
        related: tuple[Mark, ...] = (),
        cost: str = "",
        confidence: Confidence | None = None,
        severity: Severity | None = None,
        unit: str = "steps",
        key: object = None,
    ) -> Draft:
        """Report a failure at a site, or count it once more if it is already known.

        Args:
            site: the faulty line.
            message: the failure as a fact, in lower case without a full stop.
            label: text under the faulty line.
            help: one imperative sentence.
            key: identity of the finding (default: the site); reports with the same key are counted together.

        Returns:
            The draft; its cost, confidence and related lines may be changed when more evidence comes.
        """
        key = site if key is None else key
        draft = self._drafts.get(key)
        if draft is None:
            first = self._first_seen.get(key)
            draft = self._drafts[key] = Draft(
                rule=self.id,
                severity=severity or self.severity,
                confidence=confidence or self.confidence,
                message=message,
                primary=Mark(site, label),
                related=related,
                cost=cost,
                help=help,
                unit=unit,
                first_step=run.step if first is None else first,
                count=1 if first is None else 2,
            )
        else:
            draft.count += 1
        self.fired.append(draft)
        return draft

    def withdraw(self, key: object) -> None:
        """Remove a finding that later evidence disproved."""
        self._drafts.pop(key, None)

    def findings(self, run: Progress) -> list[Finding]:
        """Return all findings so far, in the order in which they were first seen."""
        return [draft.finding(run.step) for draft in self._drafts.values()]

    def verdict(self, run: Progress) -> Verdict:
        """Return the verdict: found, clear, or not observed with a reason."""
        if any(draft.confidence is not Confidence.LOW for draft in self._drafts.values()):
            return Verdict(self.id, Outcome.FOUND)
        reason = "too little evidence" if self.suspected() else self.unobserved(run)
        return Verdict(self.id, Outcome.NOT_OBSERVED if reason else Outcome.CLEAR, reason)


def _holds(need: type[Event] | Condition, run: Progress) -> bool:
    return need.holds(run) if isinstance(need, Condition) else need in run.met
