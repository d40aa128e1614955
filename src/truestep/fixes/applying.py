"""Several fixes in one file, one after the other; places below a change move with their lines."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from truestep.events import Site
from truestep.fixes.proposal import Proposal, Result, Wanted, lines
from truestep.fixes.proposing import proposed

_PASSES = 10
"""Most passes over a file with failures that are detected again."""


def applied(
    text: str,
    wanted: Sequence[Wanted],
    *,
    unsafe: bool = True,
    detect: Callable[[str], Iterable[Wanted]] | None = None,
) -> Result:
    """Return a file with several fixes, as `truestep.fixes.apply_all` does."""
    new, made = text, list[Proposal]()
    waiting: list[Wanted] = sorted(wanted, key=lambda one: (one.site.line, one.site.column))
    for _ in range(_PASSES):
        now, done, waiting = _pass(new, waiting, unsafe=unsafe)
        made += done
        if now == new:
            break
        new = now
        if detect is not None:
            waiting = list(detect(new))
    return Result(text, new, tuple(made), tuple(waiting))


def _pass(text: str, wanted: Sequence[Wanted], *, unsafe: bool) -> tuple[str, list[Proposal], list[Wanted]]:
    """Make one fix after the other; return the text, the fixes, and the failures that are left."""
    made: list[Proposal] = []
    left: list[Wanted] = []
    waiting = list(wanted)
    while waiting:
        one = waiting.pop(0)
        fix = proposed(text, one)
        if fix is None or not (fix.safe or unsafe):
            left.append(one)
            continue
        made.append(fix)
        moves = Moves(text, fix.new)
        text = fix.new
        waiting = [moved for other in waiting if (moved := moves.wanted(other)) is not None]
        left = [moves.wanted(other) or other for other in left]
    return text, made, left


class Moves:
    """Where the lines of a text are in a later version of it."""

    def __init__(self, old: str, new: str) -> None:
        before, after = lines(old), lines(new)
        self._at: dict[int, tuple[int, int]] = {}
        """New number of a line, and the change of its indentation in bytes."""
        gone: list[int] = []
        come: list[int] = []
        for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "equal":
                self._at.update({a + n + 1: (c + n + 1, 0) for n in range(b - a)})
            else:
                gone.extend(range(a, b))
                come.extend(range(c, d))
        for number in gone:  # a line that moved, perhaps into another block
            same = [place for place in come if after[place].strip() == before[number].strip() != ""]
            if len(same) == 1:
                self._at[number + 1] = same[0] + 1, _indent(after[same[0]]) - _indent(before[number])

    def wanted(self, one: Wanted) -> Wanted | None:
        """Return a failure with its places in the new text; None if its own line was changed."""
        site = self._site(one.site)
        if site is None:
            return None
        related = tuple(moved for other in one.related if (moved := self._site(other)) is not None)
        return replace(one, site=site, related=related)

    def _site(self, site: Site) -> Site | None:
        if site.line not in self._at:
            return None
        line, shift = self._at[site.line]
        end, end_shift = self._at.get(site.end_line, (-1, 0))
        column = site.column + shift if site.column >= 0 else -1
        known = end > 0 and end - line == site.end_line - site.line and site.end_column >= 0
        return replace(
            site,
            line=line,
            column=column,
            end_line=end if known else -1,
            end_column=site.end_column + end_shift if known else -1,
        )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
