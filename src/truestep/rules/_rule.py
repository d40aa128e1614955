"""What a rule is: one failure, its manual page and its detector.

A rule reads events and nothing else, keeps small state keyed by numbers, and reports a finding per site. Its class
docstring is its manual page; `Rule.__init_subclass__` checks the form and registers it.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Verdict

HEADINGS = ("What it does", "Why it matters", "Example", "Fix", "Known false alarms", "References")


@dataclass(slots=True)
class Progress:
    """Where a run stands and what its numbers stand for. Filled by the watching session, or by a replay."""

    step: int = 0
    """Number of the step under way, counted from 0: how many updates are done."""
    models: dict[int, ev.ModelMet] = field(default_factory=dict)
    optimizers: dict[int, ev.OptimizerBuilt] = field(default_factory=dict)
    schedulers: dict[int, ev.SchedulerBuilt] = field(default_factory=dict)
    loaders: dict[int, ev.LoaderMet] = field(default_factory=dict)
    parameters: dict[int, ev.ParameterMet] = field(default_factory=dict)
    held_by: dict[int, set[int]] = field(default_factory=dict)
    """Parameter number to the optimizers that hold it, by construction or add_param_group."""
    met: set[type[Event]] = field(default_factory=set)
    """Kinds of events seen so far."""

    def note(self, event: Event) -> None:
        """Take up what an event says about numbers (before the rules see it)."""
        self.met.add(type(event))
        match event:
            case ev.ModelMet():
                self.models[event.model] = event
            case ev.ParameterMet():
                self.parameters[event.parameter] = event
            case ev.OptimizerBuilt():
                self.optimizers[event.optimizer] = event
                self._hold(event.optimizer, event.parameters)
            case ev.ParametersAdded():
                self._hold(event.optimizer, event.parameters)
            case ev.SchedulerBuilt():
                self.schedulers[event.scheduler] = event
            case ev.LoaderMet():
                self.loaders[event.loader] = event
            case _:
                pass

    def _hold(self, optimizer: int, parameters: tuple[int, ...]) -> None:
        for parameter in parameters:
            self.held_by.setdefault(parameter, set()).add(optimizer)

    def advance(self, event: Event) -> None:
        """Count a step when the event closed one (after the rules saw it)."""
        if isinstance(event, ev.OptimizerStepped | ev.HandStepped):
            self.step += 1

    def name(self, event: Event | None, fallback: str) -> str:
        """The user's name for an object, from the event that introduced it."""
        return str(getattr(event, "name", "") or fallback)

    def optimizer_name(self, number: int | None) -> str:
        return self.name(self.optimizers.get(number or 0), "optimizer")

    def model_name(self, number: int | None) -> str:
        return self.name(self.models.get(number or 0), "model")

    def scheduler_name(self, number: int | None) -> str:
        return self.name(self.schedulers.get(number or 0), "scheduler")

    def loader_name(self, number: int | None) -> str:
        return self.name(self.loaders.get(number or 0), "loader")

    def parameter_names(self, numbers: tuple[int, ...], limit: int = 3) -> str:
        """Names of parameters for a sentence: the first few, and how many more."""
        known = [self.parameters[n].name for n in numbers if n in self.parameters]
        shown = ", ".join(known[:limit])
        return shown if len(known) <= limit else f"{shown} and {len(known) - limit} more"


@dataclass(slots=True)
class Draft:
    """A finding in the making: one per site and rule, counted while the run goes on."""

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

    Subclasses give a manual page as docstring (see `HEADINGS`), the class attributes below and `observe`. They may
    override `again` (to count events of steps that were the same as before and were not shown one by one) and `ended`
    (for verdicts about whole runs).
    """

    registry: ClassVar[dict[str, type[Rule]]] = {}

    id: ClassVar[str]
    """Kebab-case name of the bad pattern; the module and the class are the same words."""
    since: ClassVar[str]
    severity: ClassVar[Severity]
    confidence: ClassVar[Confidence] = Confidence.HIGH
    watches: ClassVar[tuple[type[Event], ...]]
    """Kinds of events that `observe` wants to see."""
    needs: ClassVar[tuple[type[Event], ...]]
    """Kinds of events without which nothing can be said: the verdict is then not-observed."""
    explains: ClassVar[tuple[str, ...]] = ()
    """Rules that see the same failure from another side: their findings are told under this one's."""
    leads_to: ClassVar[tuple[str, ...]] = ()
    """Rules whose findings are told under this one's where they came no earlier: what the failure grows into."""
    preview: ClassVar[bool] = False

    def __init__(self) -> None:
        self._drafts: dict[object, Draft] = {}
        self.fired: list[Draft] = []
        """Drafts reported or counted since the session last emptied this list."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        words = cls.__module__.rpartition(".")[2]
        if words.startswith("_"):  # what several rules share
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

    @abstractmethod
    def observe(self, event: Event, run: Progress) -> None:
        """Look at one event; report what is wrong."""

    def again(self, event: Event, times: int) -> None:
        """Take note that an event came ``times`` more times, in a sequence that was shown before."""

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        """Say what can only be said when the run is over."""

    def unobserved(self, run: Progress) -> str:
        """Say why the run could not tell whether this failure is there; empty where it could."""
        return next((need.absent for need in self.needs if need not in run.met), "")

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
        """Report a failure at a site, or count it once more where it is known.

        Args:
            site: the guilty line.
            message: what happened, a fact in lower case without a full stop.
            label: what stands under the guilty line.
            help: one imperative sentence.
            key: what makes this finding one finding (default: the site).

        Returns:
            The draft: its cost, confidence or related lines may be set again when more evidence comes.
        """
        key = site if key is None else key
        draft = self._drafts.get(key)
        if draft is None:
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
                first_step=run.step,
            )
        else:
            draft.count += 1
        self.fired.append(draft)
        return draft

    def withdraw(self, key: object) -> None:
        """Take back what later evidence disproved."""
        self._drafts.pop(key, None)

    def findings(self, run: Progress) -> list[Finding]:
        """All findings so far, in the order they were first seen."""
        return [draft.finding(run.step) for draft in self._drafts.values()]

    def verdict(self, run: Progress) -> Verdict:
        """Found, clear, or not observed and why."""
        if any(draft.confidence is not Confidence.LOW for draft in self._drafts.values()):
            return Verdict(self.id, Outcome.FOUND)
        reason = "too little evidence" if self._drafts else self.unobserved(run)
        return Verdict(self.id, Outcome.NOT_OBSERVED if reason else Outcome.CLEAR, reason)
