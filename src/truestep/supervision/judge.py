"""Pass events to rules in their order, and collect the findings. A pure function of events, as a replay needs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from truestep import events as ev
from truestep.accounts import Changes, Entry
from truestep.events import Event
from truestep.findings import Confidence, Finding, Outcome, Severity, Verdict
from truestep.rules import Draft, Progress, RankRule, Rule
from truestep.supervision.extent import Extent

Key = tuple[int, int]
"""A transition: number of the previous chunk, and number of the chunk."""


class Judge:
    """The rules of one run.

    Args:
        rules: classes of the rules.
        announce: called with the first error of high confidence.
    """

    def __init__(self, rules: Iterable[type[Rule]], announce: Callable[[Finding], None] | None = None) -> None:
        self.progress = Progress()
        self.extent = Extent()
        self.rules = [rule() for rule in rules]
        self.errors: list[str] = []
        self.certain = False
        """True if an error of high confidence was found."""
        self._announce = announce
        self._watching: dict[type[Event], list[Rule]] = {}
        self._counting = [rule for rule in self.rules if type(rule).again is not Rule.again]
        self._credits: dict[Key, list[tuple[Rule, Draft]]] = {}
        self._entries: dict[Key, Changes] = {}
        """Counts that the latest showing of a transition added to the accounts."""
        self._equal_entries: dict[Hashable, Any] = {}
        """The same object for equal changes, and for all of a step: the transitions of a run are many, and made of few
        changes."""
        self._failed: set[str] = set()

    def show(self, events: Sequence[Event], key: Key) -> bool:
        """Pass one chunk of events to the rules; return True if a rule reported a finding."""
        progress = self.progress
        for event in events:
            progress.note(event)
            self.extent.note(event, progress.step)
            for rule in self._listeners(type(event)):
                try:
                    rule.observe(event, progress)
                except Exception:
                    self._fail(rule)
            progress.advance(event)
        fired: list[tuple[Rule, Draft]] = []
        for rule in self.rules:
            if rule.fired:
                fired.extend((rule, draft) for draft in rule.fired)
                rule.fired.clear()
        self._credits[key] = fired
        equal = self._equal_entries
        changes = tuple(equal.setdefault(change, change) for change in progress.cut())
        self._entries[key] = equal.setdefault(changes, changes)
        if fired and not self.certain:
            self._look_for_certainty(fired)
        return bool(fired)

    def again(self, events: Sequence[Event], key: Key, times: int) -> None:
        """Count ``times`` repetitions of a transition that the rules have already observed."""
        for rule in self._counting:
            for event in events:
                if isinstance(event, rule.watches):
                    try:
                        rule.again(event, times)
                    except Exception:
                        self._fail(rule)
        for _, draft in self._credits.get(key, ()):
            draft.count += times
        if (entries := self._entries.get(key)) is not None:
            self.progress.repeat(entries, times)
        steps = sum(isinstance(event, ev.OptimizerStepped | ev.HandStepped) for event in events)
        self.progress.step += steps * times

    def end(self, how: str, given_up: str = "") -> None:
        """Pass the end of the run to the rules, for findings on the whole run."""
        event = ev.RunEnded(how=how, given_up=given_up)
        self.progress.note(event)
        for rule in self.rules:
            try:
                rule.ended(event, self.progress)
            except Exception:
                self._fail(rule)

    def forget(self) -> None:
        """Clear the transitions, since their numbers will be reused."""
        self._credits.clear()
        self._entries.clear()
        self._equal_entries.clear()

    def entries(self) -> list[tuple[str, Entry]]:
        """Return the accounts of the run that have facts, by name."""
        made = []
        for account in self.progress.accounts:
            try:
                entry = account.entry()
            except Exception:
                self.errors.append(f"account {account.name}\n{traceback.format_exc()}")
                continue
            if entry is not None:
                made.append((account.name, entry))
        return made

    def rank_facts(self) -> dict[str, Any]:
        """Return the facts that the report compares with those of other ranks; empty for a single process."""
        group = self.progress.group
        if group is None:
            return {}
        facts: dict[str, Any] = {"group": {"rank": group.rank, "world_size": group.world_size, "host": group.host}}
        for rule in self.rules:
            if isinstance(rule, RankRule):
                try:
                    of_rule = rule.facts(self.progress)
                except Exception:
                    self._fail(rule)
                    continue
                if of_rule is not None:
                    facts[rule.id] = of_rule
        return facts

    def findings(self) -> list[Finding]:
        """Return all findings, rule by rule, in their order of time."""
        return [finding for rule in self.rules for finding in self._said(rule)]

    def verdicts(self, *, given_up: str = "", blind: str = "") -> list[Verdict]:
        """Return one verdict per rule.

        Args:
            given_up: reason why costly reads were given up, or empty.
            blind: reason why supervision ended before the run, or empty.
        """
        made = []
        for rule in self.rules:
            try:
                verdict = rule.verdict(self.progress)
            except Exception:
                self._fail(rule)
                verdict = Verdict(rule.id, Outcome.NOT_OBSERVED)
            if rule.id in self._failed and verdict.outcome is not Outcome.FOUND:
                verdict = Verdict(rule.id, Outcome.NOT_OBSERVED, "the rule failed")
            elif blind and verdict.outcome is Outcome.CLEAR:
                verdict = Verdict(rule.id, Outcome.NOT_OBSERVED, blind)
            elif given_up and verdict.outcome is Outcome.CLEAR and any(need.costly for need in rule.needs):
                verdict = Verdict(rule.id, Outcome.NOT_OBSERVED, given_up)
            made.append(verdict)
        return made

    def _said(self, rule: Rule) -> list[Finding]:
        try:
            return rule.findings(self.progress)
        except Exception:
            self._fail(rule)
            return []

    def _listeners(self, kind: type[Event]) -> list[Rule]:
        listeners = self._watching.get(kind)
        if listeners is None:
            listeners = self._watching[kind] = [rule for rule in self.rules if issubclass(kind, rule.watches)]
        return listeners

    def _look_for_certainty(self, fired: list[tuple[Rule, Draft]]) -> None:
        for _, draft in fired:
            if draft.severity is Severity.ERROR and draft.confidence is Confidence.HIGH:
                self.certain = True
                if self._announce is not None:
                    self._announce(draft.finding(self.progress.step))
                return

    def _fail(self, rule: Rule) -> None:
        """Record the exception of a rule, which ignores that event; the run continues."""
        self._failed.add(rule.id)
        if len(self.errors) < 20:
            self.errors.append(f"rule {rule.id}\n{traceback.format_exc()}")
