"""A fix for one failure: made, and checked before it is proposed."""

from __future__ import annotations

import ast
import functools
import warnings

from truestep import source
from truestep.fixes.catalogue import all_fixes
from truestep.fixes.editing.program import Program, Uncertain
from truestep.fixes.families.calling import CallParentheses
from truestep.fixes.proposal import Proposal, Wanted

_MARK = "\ufeff"
"""A byte order mark, which some editors write at the start of a file."""
_LONGEST = 20_000
"""Largest number of lines of a file to fix."""


def proposed(text: str, wanted: Wanted) -> Proposal | None:
    """Return a fix for a failure in a file; None if no single edit is certain, or if the failure has no fix.

    A fix is proposed only if the file parses with it and lines with a comment ``# truestep: ignore`` stay as they are.
    """
    mark = _MARK if text.startswith(_MARK) else ""
    text = text.removeprefix(_MARK)
    kinds = [kind for kind in (CallParentheses, all_fixes().get(wanted.rule)) if kind is not None]
    if len(kinds) == 1 and not CallParentheses.covers(wanted.rule):
        return None
    if text.count("\n") > _LONGEST or "\r" in text.replace("\r\n", ""):  # line ends of old systems
        return None
    program = _program(text)
    if program is None:
        return None
    here = tuple(site for site in wanted.related if site.path == wanted.site.path)
    wanted = Wanted(wanted.rule, wanted.site, here, wanted.message, wanted.label, wanted.help)
    for kind in kinds:
        fix = kind(program, wanted)
        try:
            fix.edit()
            new = fix.edits.made()
        except (Uncertain, RecursionError):
            continue
        if new != text and _parses(new) and not fix.edits.touched & _ignored(text):
            return Proposal(wanted.rule, fix.title, fix.safe, mark + text, mark + new)
    return None


@functools.lru_cache(maxsize=1)
def _program(text: str) -> Program | None:
    """Return the syntax of a file, which is kept for its other findings: parsing takes most of the time of a fix."""
    try:
        return Program(text)
    except Uncertain:
        return None


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape in a string of the user
            compile(text, "<fix>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            compile(text, "<fix>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _ignored(text: str) -> set[int]:
    """Return the numbers of the lines of statements with a suppression comment."""
    suppressions = source.SourceFile.from_text("", text).suppressions
    return {n for one in suppressions if not one.whole_file for n in range(one.first, one.last + 1)}
