"""``truestep rules``: the catalogue."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from truestep.findings import Severity
from truestep.report.color import console as colored_console
from truestep.rules import Progress, Rule, all_rules
from truestep.rules._page import parse


def rules(
    format: Annotated[Literal["text", "json"], typer.Option(help="A table, or one JSON document.")] = "text",
) -> None:
    """List all rules: the failure of each, the events that it needs in a run, whether lint reports it, and its fix."""
    listed = [describe(rule) for rule in all_rules().values()]
    if format == "json":
        print(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    from rich.table import Table
    from rich.text import Text

    from truestep.report.terminal import SEVERITY_STYLES

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("rule", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    table.add_column("finds", ratio=3)
    table.add_column("needs", ratio=2)
    table.add_column("lint", no_wrap=True)
    table.add_column("fix", no_wrap=True)
    for rule in listed:
        name = Text(rule["id"], style="bold") + Text(" (preview)" if rule["preview"] else "", style="dim")
        severity = Text(rule["severity"], style=SEVERITY_STYLES[Severity(rule["severity"])])
        needs = Text(", ".join(rule["needs"]), style="dim")
        table.add_row(name, severity, Text(rule["finds"]), needs, "yes" if rule["lint"] else "", rule["fix"] or "")
    console = colored_console()
    console.width = max(console.width, 80) if console.is_interactive else 140
    console.print(table)
    console.print(f"\n{len(listed)} rules; read one with `truestep explain RULE`", markup=False)


def describe(rule: type[Rule]) -> dict[str, Any]:
    """Return a rule's entry in the catalogue."""
    from truestep.fixes.catalogue import all_fixes

    fix = all_fixes().get(rule.id)
    return {
        "id": rule.id,
        "severity": rule.severity.value,
        "confidence": rule.confidence.value,
        "since": rule.since,
        "preview": rule.preview,
        "finds": parse(rule.__doc__ or "").title,
        "needs": list(dict.fromkeys(_present(absent) for absent in _absent(rule))),
        "lint": rule.reads_syntax(),
        "fix": None if fix is None else "review" if fix.unsafe_if == "always" else "safe",
    }


def _absent(rule: type[Rule]) -> list[str]:
    """Return the reasons that the report on an empty run would give for "not observed"."""
    return [need.absent for need in rule.needs] or [part for part in rule().unobserved(Progress()).split(", ") if part]


def _present(absent: str) -> str:
    """Turn a reason for "not observed" into the requirement that the run did not meet.

    >>> _present("no backward pass"), _present("fewer than 10 optimizer steps")
    ('backward pass', '10 optimizer steps')
    """
    return absent.removeprefix("no ").removeprefix("fewer than ")
