"""Base class of fixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import libcst as cst

from truestep.fixes.editing.edits import Edits
from truestep.fixes.editing.names import Names
from truestep.fixes.editing.program import Program, Statement, Uncertain
from truestep.fixes.proposal import Wanted


class Fix(ABC):
    """The fix of one rule, or of several that are corrected alike.

    A subclass defines the class attributes and `edit`, which adds changes to `edits` and may set `title` and `safe`.

    Args:
        program: the file.
        wanted: the failure.
    """

    rules: ClassVar[tuple[str, ...]] = ()
    does: ClassVar[str] = ""
    """Effect of the fix, for the table of fixes: third person, without a full stop."""
    unsafe_if: ClassVar[str] = ""
    """When a fix that is safe otherwise must be reviewed, or "always"; empty if never."""
    needs_finding: ClassVar[bool] = False
    """Whether the fix reads the texts of the finding, and needs more than a place."""

    title: str
    """The edit with the names of the script: one imperative without a full stop."""
    safe: bool

    def __init__(self, program: Program, wanted: Wanted) -> None:
        self.program, self.wanted = program, wanted
        self.edits, self.names = Edits(program), Names(program)
        self.safe = self.unsafe_if != "always"
        self.title = ""

    @abstractmethod
    def edit(self) -> None:
        """Add the changes to `edits`.

        Raises:
            Uncertain: no single edit is certainly meant.
        """

    def call(self, *methods: str) -> cst.Call:
        """Return the call at the faulty place; with names of methods, one of these.

        Raises:
            Uncertain: the place has another expression.
        """
        return self._call_at(self.wanted.site, methods)

    def call_near(self, *methods: str) -> cst.Call | None:
        """Return the first call of these methods at a related place of the finding; None without one."""
        for site in self.wanted.related:
            try:
                return self._call_at(site, methods)
            except Uncertain:
                continue
        return None

    def statement(self) -> Statement:
        """Return the statement at the faulty place."""
        return self.program.statement_at(self.wanted.site)

    def _call_at(self, site: object, methods: tuple[str, ...]) -> cst.Call:
        from truestep.events import Site
        from truestep.fixes.editing.program import method, only

        assert isinstance(site, Site)
        try:
            call = self.program.at(site, cst.Call)
        except Uncertain:
            statement = self.program.statement_at(site)
            if isinstance(statement, cst.BaseCompoundStatement):
                raise
            call = only(
                one
                for one in self.program.walk(statement, cst.Call)
                if (method(one) in methods if methods else not isinstance(self.program.parent(one), cst.Attribute))
            )
        if methods and method(call) not in methods:
            inner = [one for one in self.program.walk(call, cst.Call) if method(one) in methods]
            return only(inner)
        return call
