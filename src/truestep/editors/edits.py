"""Changes of a file that an editor offers for a finding: the fix, and a comment that allows the rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from truestep.findings import Finding
from truestep.fixes import Wanted, apply_all, propose_for
from truestep.fixes.proposal import lines
from truestep.source import SourceFile

_ALLOWED = re.compile(r"(#\s*truestep:\s*ignore\[)([^\]\n]*)(\])")


@dataclass(frozen=True, slots=True)
class Change:
    """A change to offer."""

    title: str
    old: str
    new: str
    """Text of the file without and with the change."""
    preferred: bool = False
    """Whether an editor may make it without a question."""


def fix(text: str, finding: Finding) -> Change | None:
    """Return the fix of a finding; None if no single edit is certain."""
    made = propose_for(text, finding)
    if made is None:
        return None
    return Change(made.title if made.safe else f"{made.title} (to be reviewed)", text, made.new, made.safe)


def fix_all(text: str, findings: Iterable[Finding]) -> Change | None:
    """Return all safe fixes of a file as one change; None if there are none."""
    result = apply_all(text, [one for one in map(Wanted.of, findings) if one is not None], unsafe=False)
    return Change("Make all safe fixes of TrueStep", text, result.new) if result.applied else None


def allow(text: str, finding: Finding) -> Change | None:
    """Return the comment that allows a finding at its place; None if no place for a comment is certain."""
    site = finding.primary.site
    tree = _parsed(text)
    if site is None or tree is None:
        return None
    for new in _commented(text, finding.rule, site.line):
        allowed = SourceFile.from_text(site.path, new)
        moved = site.line + len(lines(new)) - len(lines(text))
        if allowed.suppression(finding.rule, moved) is not None and _parsed(new) == tree:
            return Change(f"Ignore {finding.rule} here", text, new)
    return None


def _commented(text: str, rule: str, line: int) -> Iterator[str]:
    """Yield the text with a comment: in the list of one that is there, at the end of the line, in the line above."""
    every = lines(text)
    if not 1 <= line <= len(every):
        return
    code = every[line - 1]
    body = code.rstrip("\r\n")
    end = code[len(body) :] or ("\r\n" if "\r\n" in text else "\n")
    there = _ALLOWED.search(body)
    if there:
        grown = _ALLOWED.sub(lambda found: f"{found[1]}{found[2].rstrip()}, {rule}{found[3]}", body, count=1)
        yield "".join([*every[: line - 1], grown + end, *every[line:]])
        return
    comment = f"# truestep: ignore[{rule}]"
    yield "".join([*every[: line - 1], f"{body.rstrip()}  {comment}{code[len(body) :]}", *every[line:]])
    indent = body[: len(body) - len(body.lstrip())]
    yield "".join([*every[: line - 1], f"{indent}{comment}{end}", *every[line - 1 :]])


def _parsed(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
