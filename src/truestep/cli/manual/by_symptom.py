"""The causes of a symptom, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from truestep.findings import Severity
from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.report.excerpt import wrap
from truestep.report.terminal import SEVERITY_STYLES
from truestep.rules import rule
from truestep.symptoms import Match, sentence

MOST_SHOWN = 8
"""Causes of a symptom with a sentence each; the names of the others follow."""


def document(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """Return all causes in types of JSON, the most probable one first."""
    return [
        {
            "id": cause,
            "kind": "post-mortem" if cause in POST_MORTEMS else "rule",
            "finds": sentence(cause),
            "because": match.symptom.title if match.symptom else f"its page has: {match.said}",
            "matched": match.said,
            "check": list(match.symptom.commands if match.symptom else _commands(cause)),
        }
        for match in matches
        for cause in match.causes
    ]


def show(matches: Sequence[Match], console: Console) -> None:
    """Print the matches: each symptom with what to look at first, its causes and the commands that tell them apart.

    Args:
        matches: result of `truestep.symptoms.search`, not empty.
        console: where to print.
    """
    for number, match in enumerate(matches):
        if number:
            console.print()
        if match.symptom is None:
            console.print(Text(f'Rules with "{match.said}" on their page', style="bold blue"))
        else:
            console.print(Text(match.symptom.title, style="bold blue"))
            if match.said != match.symptom.title:
                console.print(Text(f'found by "{match.said}"', style="dim"))
            for line in wrap(match.symptom.first, console.width):
                console.print(Text(line.replace("`", "")), soft_wrap=True)
        console.print()
        _causes(match.causes, console)
        if match.symptom is not None:
            console.print()
            for command in match.symptom.commands:
                console.print(Text.assemble(("  check  ", "dim"), (command, "bold")), soft_wrap=True)
    best = matches[0].causes[0]
    console.print()
    console.print(Text.assemble(("  read   ", "dim"), (f"truestep explain {best}", "bold")), soft_wrap=True)


def _causes(causes: Sequence[str], console: Console) -> None:
    shown, rest = causes[:MOST_SHOWN], causes[MOST_SHOWN:]
    margin = max(map(len, shown)) + 4
    for cause in shown:
        for number, line in enumerate(wrap(sentence(cause).replace("`", ""), console.width - margin)):
            name = "" if number else cause
            console.print(
                Text.assemble("  ", (name, _style(cause)), " " * (margin - 2 - len(name)), line), soft_wrap=True
            )
    for line in wrap("also: " + ", ".join(rest), console.width - 2) if rest else ():
        console.print(Text(f"  {line}", style="dim"), soft_wrap=True)


def _style(cause: str) -> str:
    if cause in POST_MORTEMS:
        return "bold magenta"
    return SEVERITY_STYLES[Severity(rule(cause).severity)]


def _commands(cause: str) -> tuple[str, ...]:
    asked = cause not in POST_MORTEMS and bool(rule(cause).asks)
    return ("truestep check train.py",) if asked else ("truestep run train.py",)
