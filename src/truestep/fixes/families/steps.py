"""Optimizers and scalers: built too often, stepped past the scaler, never stepped, or stepped twice."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.loops import block_of, bound, calls, loop_of, loops_of, read
from truestep.fixes.editing.program import Statement, Uncertain, dotted, method, only, receiver
from truestep.fixes.fix import Fix

_OF_TASKS = re.compile(r"for each \d+ steps")


class BuildOnce(Fix):
    """Build the optimizer once, before the loops."""

    rules = ("optimizer-rebuilt",)
    does = "moves the construction of the optimizer before the loops that do not change its arguments"
    unsafe_if = "each optimizer makes several steps, and may be that of a task"

    def edit(self) -> None:
        statement = self.statement()
        if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Call):
            raise Uncertain
        loops = loops_of(self.program, statement)
        if not loops or block_of(self.program, statement) is not loops[0].body:
            raise Uncertain
        uses, target = read(self.program, statement.value), None
        for loop in loops:
            if (bound(self.program, loop) - bound(self.program, statement)) & uses:
                break
            target = loop
        if target is None or self._is_read_before(statement, loops[0]):
            raise Uncertain
        self.safe = not _OF_TASKS.search(self.wanted.message)
        self.edits.move(statement, "before", target)
        self.title = f"Build `{self.program.code(statement.targets[0].target)}` once"

    def _is_read_before(self, statement: Statement, loop: cst.For | cst.While) -> bool:
        """Return True if the loop reads the names of the statement before it."""
        names = bound(self.program, statement)
        line = self.program.line(statement)
        return any(
            node.value in names and self.program.line(node) < line for node in self.program.walk(loop.body, cst.Name)
        )


class UseScaler(Fix):
    """Scale each loss, and step by the scaler."""

    rules = ("scaler-misused",)
    does = "scales the loss that was not scaled, or steps by the scaler that scaled the loss"
    needs_finding = True

    def edit(self) -> None:
        if "scaler.scale(loss).backward()" in self.wanted.help:
            self._scale()
        elif "scaler.step(" in self.wanted.help:
            self._step()
        else:
            raise Uncertain

    def _scale(self) -> None:
        backward, step = self.call("backward"), self.call_near("step", "unscale_")
        scaler = dotted(receiver(step)) if step is not None else self._only_scaler(backward)
        loss = receiver(backward)
        if not scaler or not dotted(loss) or self._is_scaled(loss):
            raise Uncertain
        self.edits.replace(loss, f"{scaler}.scale({self.program.code(loss)})")
        self.title = f"Scale the loss by `{scaler}`"

    def _is_scaled(self, loss: cst.BaseExpression) -> bool:
        """Return True if a value may come from a function that scales it."""
        values = [value for _, value in self.names.assignments(dotted(loss), loss)]
        return any("scale" in self.program.code(value) for value in values)

    def _only_scaler(self, near: cst.CSTNode) -> str:
        return only(sorted({dotted(receiver(call)) for call in calls(self.program, self.program.scope(near), "scale")}))

    def _step(self) -> None:
        step = self.call("step")
        scaled = self.call_near("backward")
        inner = receiver(scaled) if scaled is not None else None
        if step.args or not isinstance(inner, cst.Call) or method(inner) != "scale":
            raise Uncertain
        scaler, statement = dotted(receiver(inner)), self.program.statement(step)
        if not scaler or not isinstance(statement, cst.Expr):
            raise Uncertain
        self.edits.replace(step, f"{scaler}.step({self.program.code(receiver(step))})")
        updates = calls(self.program, self.program.scope(step), "update")
        if not any(dotted(receiver(call)) == scaler for call in updates):
            self.edits.insert("after", statement, f"{scaler}.update()")
        self.title = f"Step by `{scaler}`"


class StepOptimizer(Fix):
    """Step an optimizer that never steps."""

    rules = ("backward-without-step",)
    does = "calls `step()` of the optimizer before the only other step after the backward pass"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        named = re.search(r"call `([\w.]+)\.step\(\)` after the backward pass", self.wanted.help)
        backward = self.call("backward")
        statement = self.program.statement(backward)
        if named is None or not isinstance(statement, cst.Expr):
            raise Uncertain
        optimizer = named[1]
        if not self.names.assignments(optimizer, backward) or re.search(
            rf"\b{re.escape(optimizer)}\.step\(|\bstep\({re.escape(optimizer)}\b", self.program.text
        ):
            raise Uncertain
        block = block_of(self.program, statement)
        steps = [
            step
            for step in calls(self.program, block, "step")
            if block_of(self.program, self.program.statement(step)) is block
            and not step.args
            and self.program.line(step) >= self.program.line(statement)
        ]
        optimizers = [step for step in steps if "sched" not in self.program.code(receiver(step)).lower()]
        if len(optimizers) > 1 or "scal" in self.program.code(block).lower():
            raise Uncertain
        if optimizers:
            self.edits.insert("before", self.program.statement(optimizers[0]), f"{optimizer}.step()")
        else:
            self.edits.insert("after", statement, f"{optimizer}.step()")
        self.title = f"Call `{optimizer}.step()` after the backward pass"


class StepOnce(Fix):
    """Remove the second of two steps."""

    rules = ("step-without-backward",)
    does = "removes the second of two steps of an optimizer in one block"
    unsafe_if = "always"

    def edit(self) -> None:
        step, fed = self.call("step"), self.call_near("step")
        statement = self.program.statement(step)
        if fed is None or fed is step or self.program.code(fed) != self.program.code(step):
            raise Uncertain
        before = self.program.statement(fed)
        same = block_of(self.program, before) is block_of(self.program, statement)
        if not same or not isinstance(statement, cst.Expr) or statement.value is not step:
            raise Uncertain
        if self.program.line(before) > self.program.line(statement):
            raise Uncertain
        self.edits.remove(statement)
        self.title = f"Remove the second `{self.program.code(step)}`"


class SeedOnce(Fix):
    """Set the seed once, before the loops."""

    rules = ("seed-in-training-loop",)
    does = "moves the seed before the loops, or removes it where the same one is set before them"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call()
        statement = self.program.statement(call)
        loops = loops_of(self.program, statement)
        if not isinstance(statement, cst.Expr) or statement.value is not call or not loops:
            raise Uncertain
        code = self.program.code(call.func)
        earlier = [
            one
            for one in self.program.walk(self.program.module, cst.Call)
            if self.program.code(one.func) == code and self.program.line(one) < self.program.line(loops[-1])
        ]
        if earlier:
            self.edits.remove(statement)
            self.title = f"Remove `{self.program.code(call)}` from the loop"
            return
        if read(self.program, call) & {name for loop in loops for name in bound(self.program, loop)}:
            raise Uncertain
        self.edits.move(statement, "before", loops[-1])
        self.title = f"Call `{self.program.code(call)}` once, before the loop"


class WholePass(Fix):
    """Let the loop run to its end."""

    rules = ("one-batch-per-epoch",)
    does = "removes a `return` or `break` at the end of the body of the loop"
    unsafe_if = "always"

    def edit(self) -> None:
        statement = self.statement()
        loop = loop_of(self.program, statement)
        bare = isinstance(statement, cst.Break) or (isinstance(statement, cst.Return) and statement.value is None)
        if loop is None or block_of(self.program, statement) is not loop.body:
            raise Uncertain
        if bare:
            self.edits.remove(statement)
            self.title = f"Remove this `{self.program.code(statement)}`"
        elif isinstance(statement, cst.Return):
            self.edits.move(statement, "after", loop)
            self.title = "Return after the loop"
        else:
            raise Uncertain
