"""Gradients that are cleared too seldom, too early or too late."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.edits import Where
from truestep.fixes.editing.loops import block_of, calls, in_block, loop_of
from truestep.fixes.editing.moves import check_move
from truestep.fixes.editing.program import Statement, Uncertain, argument, dotted, only, receiver
from truestep.fixes.fix import Fix


class _Clearing(Fix):
    """Shared parts: the optimizer of a step, and the place before the backward pass."""

    def optimizer(self, step: cst.Call) -> str:
        """Return the optimizer that a call steps, also by a scaler.

        Raises:
            Uncertain: the step calls a closure, or the optimizer has no name.
        """
        owner = receiver(step)
        if step.args:
            passed = argument(step, 0, "optimizer")
            if passed is None or len(step.args) > 1 or "scal" not in dotted(owner).lower():
                raise Uncertain
            owner = passed.value
        if not dotted(owner) and not isinstance(owner, cst.Subscript):
            raise Uncertain
        if any(isinstance(node, cst.Call) for node in self.program.all(owner)):
            raise Uncertain
        return self.program.code(owner)

    def clear_before_backward(self, step: cst.Call, optimizer: str) -> None:
        """Clear before the only backward pass of the loop; after the step where there are several, or it is elsewhere.

        Raises:
            Uncertain: the step is not a statement.
        """
        self.edits.insert(*self.place_to_clear(step), f"{optimizer}.zero_grad()")

    def place_to_clear(self, step: cst.Call) -> tuple[Where, Statement]:
        statement = self.program.statement(step)
        if isinstance(statement, cst.BaseCompoundStatement) or self._is_in_comprehension(step):
            raise Uncertain
        block = block_of(self.program, statement)
        around = loop_of(self.program, step) or self.program.scope(step)
        passes = list(calls(self.program, around, "backward"))
        if len(passes) == 1:
            before = self.program.statement(passes[0])
            if isinstance(before, cst.BaseSmallStatement) and block_of(self.program, before) is block:
                return "before", before
        return "after", statement

    def _is_in_comprehension(self, node: cst.CSTNode) -> bool:
        statement = self.program.statement(node)
        return any(
            isinstance(one, cst.BaseComp) for one in self.program.ancestors(node) if self.program.inside(one, statement)
        )


class ClearOncePerStep(_Clearing):
    """Clear the gradients before the backward pass."""

    rules = ("missing-zero-grad",)
    does = "calls `zero_grad()` before the backward pass; after the step where there are several backward passes"

    def edit(self) -> None:
        step = self.call("step")
        around = loop_of(self.program, step) or self.program.scope(step)
        if step.args and "scal" not in dotted(receiver(step)).lower():  # a closure, which computes the gradients
            self._in_closure(step)
            return
        optimizer = self.optimizer(step)
        if any(self.program.code(receiver(call)) == optimizer for call in calls(self.program, around, "zero_grad")):
            raise Uncertain
        self.clear_before_backward(step, optimizer)
        self.title = f"Call `{optimizer}.zero_grad()` once per step"

    def _in_closure(self, step: cst.Call) -> None:
        passed = argument(step, 0, "closure")
        optimizer = self.program.code(receiver(step))
        if passed is None or not dotted(receiver(step)):
            raise Uncertain
        name = dotted(passed.value)
        closure = only(
            node for node in self.program.nodes if isinstance(node, cst.FunctionDef) and node.name.value == name
        )
        backward = only(calls(self.program, closure.body, "backward"))
        if list(calls(self.program, closure.body, "zero_grad")):
            raise Uncertain
        self.edits.insert("before", self.program.statement(backward), f"{optimizer}.zero_grad()")
        self.title = f"Call `{optimizer}.zero_grad()` before each backward pass"


class ClearInLoop(_Clearing):
    """Move the clearing from the start of an epoch into the loop over batches."""

    rules = ("zero-grad-once-per-epoch",)
    does = "moves `zero_grad()` from the start of the epoch into the loop over batches"

    def edit(self) -> None:
        step = self.call("step")
        optimizer = self.optimizer(step)
        inner = loop_of(self.program, step)
        if inner is None:
            raise Uncertain
        within = list(calls(self.program, inner, "zero_grad"))
        if any(self.program.code(receiver(call)) == optimizer for call in within):
            raise Uncertain
        clears = [
            call
            for call in calls(self.program, self.program.scope(step), "zero_grad")
            if not self.program.inside(call, inner)
        ]
        own = [call for call in clears if self.program.code(receiver(call)) == optimizer]
        moved = own or clears
        where, target = self.place_to_clear(step)
        if len(moved) == 1 and isinstance(self.program.statement(moved[0]), cst.Expr):
            self.edits.move(self.program.statement(moved[0]), where, target)
            self.title = f"Call `{self.program.code(moved[0])}` for each batch"
        else:
            self.edits.insert(where, target, f"{optimizer}.zero_grad()")
            self.title = f"Call `{optimizer}.zero_grad()` for each batch"


class ClearBeforeBackward(_Clearing):
    """Move the clearing out of the way from the backward pass to the step."""

    rules = ("zero-grad-before-step",)
    does = "moves `zero_grad()` before the backward pass, or after the step"

    def edit(self) -> None:
        clear = self.call("zero_grad")
        statement = self.program.statement(clear)
        if not isinstance(statement, cst.Expr):
            raise Uncertain
        backward, step = self.call_near("backward"), self.call_near("step")
        block = block_of(self.program, statement)
        before = in_block(self.program, backward, block) if backward is not None else None
        after = in_block(self.program, step, block) if step is not None else None
        self.title = f"Call `{self.program.code(clear)}` before the backward pass"
        if isinstance(before, cst.BaseSmallStatement) and self.program.line(before) <= self.program.line(statement):
            check_move(self.program, statement, before)
            self.edits.move(statement, "before", before)
        elif isinstance(after, cst.BaseSmallStatement) and before is None and self._is_before(statement, after):
            check_move(self.program, statement, after)
            self.edits.move(statement, "after", after)
            self.title = f"Call `{self.program.code(clear)}` after the step"
        else:
            raise Uncertain

    def _is_before(self, first: Statement, second: Statement) -> bool:
        one, other = self.program.span(first).start, self.program.span(second).start
        return (one.line, one.column) < (other.line, other.column)
