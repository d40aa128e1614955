"""Shares of the mutants that were found: by operator, style and half."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]


def summary(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the scores of the mutants that ran and differ from their programs."""
    valid = [row for row in rows if row["valid"]]
    return {
        "all": share(valid),
        "half": by(valid, lambda row: row["half"]),
        "half of operators": by(valid, lambda row: row["half of operator"]),
        "style": by(valid, lambda row: row["style"]),
        "data": by(valid, lambda row: "DataLoader" if row["loader"] else "no DataLoader"),
        "operator": by(valid, lambda row: row["operator"]),
    }


def by(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, dict[str, float]]:
    """Return the scores of groups of mutants."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: share(group) for name, group in sorted(groups.items())}


def share(rows: list[Row]) -> dict[str, float]:
    """Return the number of mutants, the percentage that was found, and that found at the place of the mistake."""
    count = max(1, len(rows))
    return {
        "mutants": len(rows),
        "found %": round(100 * sum(bool(row["found"]) for row in rows) / count, 1),
        "placed %": round(100 * sum(row["placed"] for row in rows) / count, 1),
    }


def table(scores: dict[str, Any]) -> str:
    """Return the scores as text of 80 columns."""
    lines = [f"{'':34} {'mutants':>8} {'found':>8} {'placed':>8}"]
    for group, value in scores.items():
        if "mutants" in value:
            lines.append(_line(group, value))
            continue
        lines += ["", group]
        lines += [_line(f"  {name}", one) for name, one in value.items()]
    return "\n".join(lines)


def _line(name: str, one: dict[str, float]) -> str:
    return f"{name:34} {one['mutants']:8} {one['found %']:6.1f} % {one['placed %']:6.1f} %"
