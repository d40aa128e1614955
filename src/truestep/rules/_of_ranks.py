"""Base class of rules that compare the ranks of a run: each rank states facts, and the report compares them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Verdict
from truestep.rules._rule import Progress, Rule


class RankRule(Rule):
    """One silent failure that only the comparison of several ranks shows."""

    alone: ClassVar[str] = "not compared with another rank"
    """Reason for "not observed" in a report of one rank."""

    @abstractmethod
    def facts(self, run: Progress) -> dict[str, Any] | None:
        """Return the facts of this rank in types of JSON; None if they cannot show the failure."""

    @classmethod
    @abstractmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        """Return the findings for the facts of two or more ranks, by rank; None if these cannot show the failure."""

    def verdict(self, run: Progress) -> Verdict:
        return Verdict(self.id, Outcome.NOT_OBSERVED, self.unobserved(run) or self.alone)

    @classmethod
    def finding(
        cls,
        site: Site | None,
        message: str,
        *,
        label: str,
        help: str,
        ranks: int,
        world_size: int,
        cost: str = "",
        related: tuple[Mark, ...] = (),
        confidence: Confidence | None = None,
        severity: Severity | None = None,
        first_step: int | None = None,
    ) -> Finding:
        """Return a finding; see `Rule.report` for the arguments, and `ranks` is the number of affected ranks."""
        return Finding(
            rule=cls.id,
            severity=severity or cls.severity,
            confidence=confidence or cls.confidence,
            message=message,
            primary=Mark(site, label),
            related=related,
            seen=Seen(count=ranks, total=world_size, unit="ranks", first_step=first_step),
            cost=cost,
            help=help,
        )


def grouped(facts: Mapping[int, Any], key: str) -> list[dict[int, Any]]:
    """Return the facts of ranks with one value, a list, in groups of two or more ranks, in the order of the values.

    >>> grouped({0: {"group": [0, 2]}, 1: {"group": [1]}, 2: {"group": [0, 2]}}, "group")
    [{0: {'group': [0, 2]}, 2: {'group': [0, 2]}}]
    """
    groups: dict[tuple[Any, ...], dict[int, Any]] = {}
    for rank in sorted(facts):
        groups.setdefault(tuple(facts[rank][key]), {})[rank] = facts[rank]
    return [groups[value] for value in sorted(groups) if len(groups[value]) > 1]


def place(site: Site | None) -> list[Any] | None:
    """Return a site in types of JSON.

    >>> site(place(Site("train.py", 3, 1, 3, 9, "main"))).line
    3
    """
    return None if site is None else [getattr(site, name) for name in Site.__slots__]


def site(place: list[Any] | None) -> Site | None:
    """Return the site from the result of `place`."""
    return None if place is None else Site(*place)
