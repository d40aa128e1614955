"""Schedules that are stepped at the wrong place, or never."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.edits import last_of
from truestep.fixes.editing.loops import alone_in_if, block_of, calls, in_block, loop_of, loops_of
from truestep.fixes.editing.moves import check_move
from truestep.fixes.editing.program import Loop, Statement, Uncertain, dotted, method, only, receiver
from truestep.fixes.fix import Fix

_HORIZONS = ("T_max", "total_iters", "epochs")
"""Arguments of schedules that are numbers of their steps."""


class _Schedule(Fix):
    """Shared parts: the step of a schedule and of its optimizer."""

    def schedule_step(self) -> tuple[cst.Call, Statement]:
        """Return the call that steps a schedule, which is a statement and gets no metric.

        Raises:
            Uncertain: it is part of a larger statement, or gets a metric.
        """
        call = self.call("step")
        statement = self.program.statement(call)
        if not isinstance(statement, cst.Expr) or statement.value is not call or call.args:
            raise Uncertain
        return call, statement

    def optimizer_step(self, schedule: str, near: cst.CSTNode) -> cst.Call:
        """Return the only step of an optimizer in the function of a node.

        Raises:
            Uncertain: there is none, or there are several.
        """
        near_by = self.call_near("step")
        if near_by is not None and self.program.code(receiver(near_by)) != schedule:
            return near_by
        return only(self._optimizer_steps(schedule, self.program.scope(near)))

    def _optimizer_steps(self, schedule: str, scope: cst.CSTNode) -> list[cst.Call]:
        schedules = {schedule, *self._schedules()}
        steps = (call for call in calls(self.program, scope, "step"))
        return [call for call in steps if self.program.code(receiver(call)) not in schedules]

    def _schedules(self) -> set[str]:
        found = set()
        for node in self.program.nodes:
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                if ".lr_scheduler." in f"{self.names.full(node.value.func)}.":
                    found |= {dotted(target.target) for target in node.targets}
        return found

    def after_update(self, step: cst.Call) -> Statement:
        """Return the statement after which the step is done: that of the scaler's update where a scaler steps."""
        statement = self.program.statement(step)
        if not isinstance(statement, cst.BaseSmallStatement):
            raise Uncertain
        block = block_of(self.program, statement)
        for call in calls(self.program, self.program.scope(step), "update"):
            later = self.program.statement(call)
            if step.args and self.program.code(receiver(call)) == self.program.code(receiver(step)):
                if isinstance(later, cst.BaseSmallStatement) and block_of(self.program, later) is block:
                    return later
        return statement


class ScheduleAfterStep(_Schedule):
    """Step the schedule after the optimizer."""

    rules = ("scheduler-before-optimizer",)
    does = "moves the step of the schedule behind that of the optimizer, or behind the loop with it"

    def edit(self) -> None:
        call, statement = self.schedule_step()
        step = self.optimizer_step(self.program.code(receiver(call)), call)
        if loop_of(self.program, statement) is None:
            raise Uncertain
        block = block_of(self.program, statement)
        target = in_block(self.program, step, block)
        if target is None or self.program.line(target) < self.program.line(statement):
            raise Uncertain
        if isinstance(target, cst.BaseSmallStatement):
            target = self.after_update(step)
        check_move(self.program, statement, target)
        self.edits.move(statement, "after", target)
        self.title = f"Call `{self.program.code(call)}` after `{self.program.code(step)}`"


class ScheduleInItsUnit(_Schedule):
    """Step the schedule once per epoch, or for each step, as its length counts."""

    rules = ("scheduler-wrong-cadence",)
    does = "moves the step of the schedule out of the loop over batches, or into it, as the finding says"
    needs_finding = True

    def edit(self) -> None:
        call, statement = self.schedule_step()
        if re.search(r"once per epoch, after the loop|once per epoch, or make|behind the loop", self.wanted.help):
            self._per_epoch(call, statement)
        elif re.search(r"(after|behind) every `[^`]+\.step\(\)`|into the loop over the batches", self.wanted.help):
            self._per_step(call, statement)
        else:
            raise Uncertain

    def _per_epoch(self, call: cst.Call, statement: Statement) -> None:
        loops = loops_of(self.program, statement)
        if not loops or block_of(self.program, statement) is not loops[0].body:
            raise Uncertain
        inner, function = loops[0], self.program.function(statement)
        if not (_is_epochs(self, loops[1]) if len(loops) > 1 else function is not None and not _counts(inner)):
            raise Uncertain
        self.edits.move(statement, "after", inner)
        self.title = f"Call `{self.program.code(call)}` once per epoch"

    def _per_step(self, call: cst.Call, statement: Statement) -> None:
        step = self.optimizer_step(self.program.code(receiver(call)), call)
        target = self.after_update(step)
        inner, outer = loop_of(self.program, step), loop_of(self.program, statement)
        if inner is None or inner is outer or not self.program.inside(inner, outer or self.program.module):
            raise Uncertain
        if outer is None or block_of(self.program, statement) is not outer.body:
            raise Uncertain
        self.edits.move(statement, "after", target)
        self.title = f"Call `{self.program.code(call)}` after each step"


def _counts(loop: Loop) -> bool:
    """Return True if a loop goes over numbers, and so perhaps over epochs."""
    counted = loop.iter if isinstance(loop, cst.For) else None
    return counted is None or (isinstance(counted, cst.Call) and dotted(counted.func) in ("range", "trange"))


def _is_epochs(fix: Fix, loop: Loop) -> bool:
    """Return True if a loop counts, as one over epochs does."""
    return isinstance(loop, cst.While) or (isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) != "")


class ScheduleOnce(_Schedule):
    """Step the schedule at one place only."""

    rules = ("scheduler-stepped-twice",)
    does = "removes the second step of the schedule"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call("step")
        statement = self.program.statement(call)
        name = self.program.code(receiver(call))
        if not isinstance(statement, cst.Expr) or statement.value is not call:
            raise Uncertain
        others = [
            one
            for one in self.program.walk(self.program.module, cst.Call)
            if method(one) == "step" and one is not call and self.program.code(receiver(one)) == name
        ]
        if not others:
            raise Uncertain
        around = loop_of(self.program, statement)
        unit = alone_in_if(self.program, statement, around.body if around else self.program.module)
        self.edits.remove(unit)
        self.title = f"Remove this `{self.program.code(call)}`"


class StepSchedule(_Schedule):
    """Step a schedule that was built and never stepped."""

    rules = ("scheduler-never-stepped", "learning-rate-dead")
    does = "calls `step()` of the schedule after each step, or once per epoch where its length is that of the loop"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        statement = self.statement()
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            raise Uncertain
        schedule, made = dotted(statement.targets[0].target), statement.value
        if not schedule or not isinstance(made, cst.Call) or ".lr_scheduler." not in f"{self.names.full(made.func)}.":
            raise Uncertain
        scope = self.program.scope(statement)
        module = self.program.walk(self.program.module, cst.Call)
        if any(method(one) == "step" and self.program.code(receiver(one)) == schedule for one in module):
            raise Uncertain
        step = only(self._optimizer_steps(schedule, scope))
        if f"after every `{self.program.code(receiver(step))}.step()`" in self.wanted.help:
            self.edits.insert("after", self.after_update(step), f"{schedule}.step()")
            self.title = f"Call `{schedule}.step()` after each step"
            return
        length = only(arg for arg in made.args if self._is_length(made, arg))
        loops = loops_of(self.program, step)
        epochs = only(loop for loop in loops if self._counts_to(loop, length.value))
        if epochs is loops[0]:
            self.edits.insert("after", self.after_update(step), f"{schedule}.step()")
        else:
            inner = in_block(self.program, step, epochs.body)
            self.edits.insert("after", inner or last_of(epochs.body), f"{schedule}.step()")
        self.title = f"Call `{schedule}.step()` once per epoch"

    def _is_length(self, made: cst.Call, arg: cst.Arg) -> bool:
        if arg.keyword is not None:
            return arg.keyword.value in _HORIZONS
        second = len(made.args) > 1 and made.args[1] is arg
        return second and self.names.full(made.func).endswith(".CosineAnnealingLR")

    def _counts_to(self, loop: Loop, length: cst.BaseExpression) -> bool:
        counted = loop.iter if isinstance(loop, cst.For) else None
        return (
            isinstance(counted, cst.Call)
            and dotted(counted.func) in ("range", "trange")
            and self.program.code(counted.args[-1].value) == self.program.code(length)
        )
