"""Modules, parameters and methods that are used by the wrong name, or not called."""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from truestep.fixes.editing.program import Statement, Uncertain, dotted, only, receiver
from truestep.fixes.fix import Fix

_METHODS = {
    "backward-without-step": "step",
    "clip-before-unscale": "unscale_",
    "eval-mode-missing": "eval",
    "missing-zero-grad": "zero_grad",
    "scheduler-never-stepped": "step",
    "step-without-backward": "backward",
    "train-mode-not-restored": "train",
}
"""The method that is not called where these failures occur."""


class CallModule(Fix):
    """Call the module, with its hooks."""

    rules = ("forward-called-directly",)
    does = "calls the module instead of its `forward`"

    def edit(self) -> None:
        call = self.call("forward")
        model = receiver(call)
        if isinstance(model, cst.Call) and dotted(model.func) == "super":
            raise Uncertain
        self.edits.replace(call.func, model)
        name = self.program.code(model)
        self.title = f"Call `{name}(...)` instead of `{name}.forward(...)`"


class FreezeInEarnest(Fix):
    """Freeze by `requires_grad_`, which modules and parameters have."""

    rules = ("freeze-without-effect",)
    does = "calls `requires_grad_` of the module or the parameter"

    def edit(self) -> None:
        statement = self.statement()
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            raise Uncertain
        target = statement.targets[0].target
        if not isinstance(target, cst.Attribute) or "grad" not in target.attr.value:
            raise Uncertain
        value = self.program.code(statement.value)
        call = f"{self.program.code(target.value)}.requires_grad_({value})"
        made = cst.Expr(self.edits.expression(call), semicolon=statement.semicolon)
        self.edits.change(statement, lambda _: made)
        self.title = f"Call `{call}`"


class CallParentheses(Fix):
    """Write the parentheses of a call that a statement lacks: ``optimizer.zero_grad``."""

    does = "writes the parentheses behind a method that a statement only names"
    methods: ClassVar[dict[str, str]] = _METHODS

    @classmethod
    def covers(cls, rule: str) -> bool:
        """Return True if this fix can correct a failure of another rule."""
        return rule in _METHODS

    def edit(self) -> None:
        rule = self.wanted.rule
        if rule in _METHODS:
            places = [self.wanted.site, *self.wanted.related]
            functions = {self.program.scope(self.program.statement_at(site)) for site in places}
            named = only(
                found
                for function in functions
                for statement in self.program.here(function, cst.Expr)
                if (found := _named(statement, _METHODS[rule])) is not None
            )
        else:
            raise Uncertain
        self.edits.change(named, lambda node: cst.Call(func=node))  # type: ignore[arg-type]
        self.title = f"Call `{self.program.code(named)}()`"


def _named(statement: Statement, method: str) -> cst.Attribute | None:
    """Return the attribute that is all of a statement, if it is the name of a method to call."""
    value = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(value, cst.Attribute) or not dotted(value):
        return None
    name = value.attr.value
    return value if name == method else None
