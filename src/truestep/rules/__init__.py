"""The catalogue of rules: one silent failure per module, discovered by listing the folder. Needs no torch."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil

from truestep.errors import UnknownRule
from truestep.rules._of_ranks import RankRule
from truestep.rules._rule import Draft, Progress, Rule

__all__ = ["Draft", "Progress", "RankRule", "Rule", "all_rules", "battery", "catalogue", "rule"]


@functools.cache
def catalogue() -> dict[str, type[Rule]]:
    """Return every rule by id, sorted: those of runs, and the notices that only `truestep lint` reports.

    >>> sorted(catalogue().keys() - all_rules().keys())[0]
    'data-parallel-module'
    """
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    mine = {id: cls for id, cls in Rule.registry.items() if cls.__module__.startswith(f"{__name__}.")}
    return dict(sorted(mine.items()))


@functools.cache
def all_rules() -> dict[str, type[Rule]]:
    """Return every rule that has a verdict in a run, by id, sorted.

    >>> "missing-zero-grad" in all_rules()
    True
    """
    return {id: cls for id, cls in catalogue().items() if cls.in_runs}


def battery() -> list[type[Rule]]:
    """Return the rules with a check on copies of the model or the data.

    >>> [rule.id for rule in battery()][0]
    'augmentation-in-evaluation'
    """
    return [rule for rule in all_rules().values() if rule.asks]


def rule(id: str) -> type[Rule]:
    """Return the rule with this id.

    Raises:
        UnknownRule: no rule has this id; the message lists the nearest ids.

    >>> rule("missing-zero-grad").severity.value
    'error'
    """
    rules = catalogue()
    if id not in rules:
        near = difflib.get_close_matches(id, rules, n=3, cutoff=0.5)
        expected = f"nearest: {', '.join(near)}" if near else f"there are {len(rules)} rules"
        raise UnknownRule(f'no rule is called "{id}"', expected=expected, remedy="list them with `truestep rules`")
    return rules[id]
