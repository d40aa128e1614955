"""Modules and parameters that are used by the wrong name."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.program import Uncertain, dotted, receiver
from truestep.fixes.fix import Fix


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
