"""Two runs: settings and results that differ."""

from __future__ import annotations

from dataclasses import dataclass

from truestep.runs.described import DescribedRun


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs, compared.

    Attributes:
        one: the first run.
        other: the second run.
        settings: settings that differ, by name, with both texts; "" for a run without the setting.
        results: last values, by name; None for a run without the value.
        findings: rules with a finding in the first run only, and in the second only.
    """

    one: DescribedRun
    other: DescribedRun
    settings: dict[str, tuple[str, str]]
    results: dict[str, tuple[float | None, float | None]]
    findings: tuple[tuple[str, ...], tuple[str, ...]]


def compared(one: DescribedRun, other: DescribedRun) -> ComparedRuns:
    """Return the differences between two runs.

    Args:
        one: a run.
        other: a run.
    """
    names = list({**one.settings, **other.settings})
    if one.kind != other.kind:  # of a record, other facts are known
        names = [name for name in names if name in one.settings and name in other.settings]
    settings = {name: (one.settings.get(name, ""), other.settings.get(name, "")) for name in names}
    settings = {"revision": (one.revision, other.revision), **settings}
    differ = {name: both for name, both in settings.items() if both[0] != both[1]}
    shared = list({**one.results, **other.results})
    results = {name: (one.results.get(name), other.results.get(name)) for name in shared}
    if one.best is not None or other.best is not None:
        results["metric of the best checkpoint"] = (one.best, other.best)
    first, second = one.findings or (), other.findings or ()
    only = tuple(tuple(rule for rule in a if rule not in b) for a, b in ((first, second), (second, first)))
    return ComparedRuns(one, other, differ, results, (only[0], only[1]))
