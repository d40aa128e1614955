"""Requests for fixes, proposals, and the result of several fixes in a file. Needs no libcst."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.events import Site
from truestep.findings import Finding

CONTEXT = 2
"""Lines around a change in a diff."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A failure to fix in a file."""

    rule: str
    site: Site
    """The faulty place, the primary site of a finding."""
    related: tuple[Site, ...] = ()
    """Other places of the finding, in the order of the report."""
    message: str = ""
    label: str = ""
    help: str = ""
    """Texts of the finding: they name objects of the script, and the direction of a correction."""

    @classmethod
    def of(cls, finding: Finding) -> Wanted | None:
        """Return the request for a finding; None if it has no place."""
        site = finding.primary.site
        if site is None:
            return None
        related = tuple(mark.site for mark in finding.related if mark.site is not None and not mark.of_remedy)
        return cls(finding.rule, site, related, finding.message, finding.primary.label, finding.help)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A fix for one failure in one file."""

    rule: str
    title: str
    """The edit: one imperative without a full stop."""
    safe: bool
    """True if the fix restores the evident meaning of the script; other fixes must be reviewed."""
    old: str = field(repr=False)
    new: str = field(repr=False)
    """Text of the file without and with the fix."""

    def diff(self, path: str = "", *, context: int = CONTEXT) -> str:
        r"""Return the change as a unified diff.

        Args:
            path: name of the file for the two lines of the head, which are left out without a name.
            context: lines around each change.

        >>> fix = Proposal("rule", "Do it", True, "a = 1\nb = 2\n", "a = 1\nb = 3\n")
        >>> print(fix.diff(), end="")
        @@ -1,2 +1,2 @@
         a = 1
        -b = 2
        +b = 3
        """
        return diff(self.old, self.new, path, context=context)

    def hunks(self) -> list[tuple[int, int, tuple[str, ...]]]:
        r"""Return the change as replaced lines: first line, number of lines, and the new lines with their ends.

        >>> Proposal("rule", "Do it", True, "a = 1\nb = 2\n", "a = 1\nb = 3\n").hunks()
        [(2, 1, ('b = 3\n',))]
        """
        old, new = lines(self.old), lines(self.new)
        codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(a + 1, b - a, tuple(new[c:d])) for kind, a, b, c, d in codes if kind != "equal"]


@dataclass(frozen=True, slots=True)
class Result:
    """A file after several fixes."""

    old: str = field(repr=False)
    new: str = field(repr=False)
    applied: tuple[Proposal, ...] = ()
    """The fixes in the order in which they were made, each against the text before it."""
    left: tuple[Wanted, ...] = ()
    """The failures for which no fix was made."""

    def diff(self, path: str = "", *, context: int = CONTEXT) -> str:
        """Return all changes as one unified diff, as `Proposal.diff` does."""
        return diff(self.old, self.new, path, context=context)


def lines(text: str) -> list[str]:
    r"""Return the lines of a program with their ends, as Python counts them.

    >>> lines("a\r\nb\x0cc\n")
    ['a\r\n', 'b\x0cc\n']
    """
    return list(_lines(text))


def _lines(text: str) -> Iterator[str]:
    begin = 0
    while begin < len(text):
        ends = [place for place in (text.find("\n", begin), text.find("\r", begin)) if place >= 0]
        if not ends:
            yield text[begin:]
            return
        end = min(ends) + 1
        if text[end - 1] == "\r" and text[end : end + 1] == "\n":
            end += 1
        yield text[begin:end]
        begin = end


def diff(old: str, new: str, path: str = "", *, context: int = CONTEXT) -> str:
    """Return the difference of two texts as a unified diff, which `patch` and `git apply` read.

    Args:
        old: the text before.
        new: the text after.
        path: name of the file for the two lines of the head, which are left out without a name.
        context: lines around each change.
    """
    found = difflib.unified_diff(lines(old), lines(new), f"a/{path}", f"b/{path}", n=context)
    out = []
    for position, line in enumerate(found):
        if position < 2 and not path:
            continue
        out.append(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n")
    return "".join(out)
