"""Clips of gradients at the wrong place, or of the wrong gradients."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.loops import alone_in_if, block_of, calls, in_block, loop_of
from truestep.fixes.editing.moves import check_move
from truestep.fixes.editing.program import Statement, Uncertain, argument, dotted, method, only, receiver
from truestep.fixes.fix import Fix


class _Clip(Fix):
    """Shared parts: the clip, the step, and the scaler between them."""

    def clip(self) -> tuple[cst.Call, Statement]:
        """Return the clip and its statement, which contains nothing else.

        Raises:
            Uncertain: the clip is part of a larger statement.
        """
        call = self.call()
        statement = self.program.statement(call)
        if not isinstance(statement, cst.Expr | cst.Assign) or statement.value is not call:
            raise Uncertain
        return call, statement

    def scaler_of(self, step: cst.Call) -> tuple[str, str] | None:
        """Return the scaler and the optimizer of a step by a scaler; None for a step of the optimizer."""
        if not step.args:
            return None
        scaler, passed = dotted(receiver(step)), argument(step, 0, "optimizer")
        if not scaler or passed is None or "scal" not in scaler.lower():
            raise Uncertain
        return scaler, self.program.code(passed.value)


class ClipBetween(_Clip):
    """Move the clip between the backward pass and the step."""

    rules = ("clip-after-step", "clip-before-backward")
    does = "moves the clip between the backward pass and the step, behind `unscale_` where a scaler steps"

    def edit(self) -> None:
        call, statement = self.clip()
        step = self.call_near("step") or self._step_of_loop(call)
        if loop_of(self.program, step) is not loop_of(self.program, call):
            raise Uncertain
        target = self.program.statement(step)
        around = loop_of(self.program, step)
        unit = alone_in_if(self.program, statement, block_of(self.program, around) if around else self.program.module)
        if self.program.inside(target, unit):
            raise Uncertain
        self._check_order(unit, target)
        check_move(self.program, unit, target)
        scaled = self.scaler_of(step)
        if scaled is not None:
            scaler, optimizer = scaled
            unscaled = list(calls(self.program, self.program.scope(step), "unscale_"))
            if not unscaled:
                self.edits.insert("before", target, f"{scaler}.unscale_({optimizer})")
            elif any(not self._is_before(one, target) for one in unscaled):
                raise Uncertain
        self.edits.move(unit, "before", target)
        self.title = f"Clip before `{self.program.code(step)}`"

    def _step_of_loop(self, call: cst.Call) -> cst.Call:
        """Return the only step of an optimizer in the loop around a call."""
        around = loop_of(self.program, call) or self.program.scope(call)
        steps = calls(self.program, around, "step")
        return only(step for step in steps if "sched" not in self.program.code(receiver(step)).lower())

    def _check_order(self, unit: Statement, target: Statement) -> None:
        """Raise an error if the clip is where it belongs already."""
        late = self.program.line(unit) > self.program.line(target) or (
            self.program.line(unit) == self.program.line(target)
            and self.program.span(unit).start.column > self.program.span(target).start.column
        )
        if late:
            return
        block = block_of(self.program, unit)
        backward = self.call_near("backward")
        if backward is None or in_block(self.program, backward, block) is None or not self._is_before(unit, backward):
            raise Uncertain

    def _is_before(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        one, other = self.program.span(first).start, self.program.span(second).start
        return (one.line, one.column) < (other.line, other.column)


class UnscaleFirst(_Clip):
    """Unscale the gradients before the clip."""

    rules = ("clip-before-unscale",)
    does = "calls `unscale_` of the scaler before the clip"

    def edit(self) -> None:
        call = self.call()
        statement = self.program.statement(call)
        steps = [
            step
            for step in calls(self.program, self.program.scope(call), "step")
            if step.args and "scal" in self.program.code(receiver(step)).lower()
        ]
        named = [step for step in steps if f"unscale_({self.program.code(step.args[0].value)})" in self.wanted.help]
        step = only(named if len(steps) > 1 else steps)
        scaled = self.scaler_of(step)
        if scaled is None or loop_of(self.program, step) is not loop_of(self.program, call):
            raise Uncertain
        scaler, optimizer = scaled
        unit = alone_in_if(self.program, statement, block_of(self.program, self.program.statement(step)))
        if block_of(self.program, unit) is not block_of(self.program, self.program.statement(step)):
            raise Uncertain  # with several backward passes per step, it must not be called for each
        if isinstance(statement, cst.BaseCompoundStatement):
            raise Uncertain
        there = [
            one for one in calls(self.program, self.program.scope(call), "unscale_") if _passes(self, one, optimizer)
        ]
        if there:
            late = self.program.statement(only(there))
            if not isinstance(late, cst.Expr) or self.program.line(late) <= self.program.line(statement):
                raise Uncertain
            check_move(self.program, late, statement)
            self.edits.move(late, "before", statement)
        else:
            self.edits.insert("before", statement, f"{scaler}.unscale_({optimizer})")
        self.title = f"Call `{scaler}.unscale_({optimizer})` before the clip"


def _passes(fix: Fix, call: cst.Call, optimizer: str) -> bool:
    return len(call.args) == 1 and fix.program.code(call.args[0].value) == optimizer


class ClipAgain(_Clip):
    """Make a list of parameters that can be read only once."""

    rules = ("clip-wrong-parameters",)
    does = "makes a list of an iterator over parameters that the optimizer has read to its end"

    def edit(self) -> None:
        passed = argument(self.call(), 0, "parameters")
        name = dotted(passed.value) if passed is not None else ""
        if not name:
            raise Uncertain
        value = self.names.value(name, self.call())
        code = self.program.code
        if isinstance(value, cst.GeneratorExp):
            listed = cst.ListComp(elt=value.elt, for_in=value.for_in)
            self.edits.replace(value, listed)
        elif isinstance(value, cst.Call) and (
            dotted(value.func) in ("filter", "map", "itertools.chain", "chain")
            or method(value) in ("parameters", "values")
        ):
            self.edits.replace(value, f"list({code(value)})")
        else:
            raise Uncertain
        self.title = f"Make `{name}` a list, which can be read several times"


class ClipOfAllRanks(_Clip):
    """Clip by the norm of all ranks, as FSDP does."""

    rules = ("clipped-per-rank",)
    does = "calls `clip_grad_norm_` of the model that FSDP divides"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call()
        passed, most = argument(call, 0, "parameters"), argument(call, 1, "max_norm")
        inner = passed.value if passed is not None else None
        if most is None or len(call.args) != 2 or not isinstance(inner, cst.Call) or method(inner) != "parameters":
            raise Uncertain
        model = receiver(inner)
        made = self.names.made(model, call)
        if not isinstance(made, cst.Call) or not self.names.full(made.func).endswith(".FullyShardedDataParallel"):
            raise Uncertain
        self.edits.replace(call, f"{self.program.code(model)}.clip_grad_norm_({self.program.code(most.value)})")
        self.title = f"Clip by `{self.program.code(model)}.clip_grad_norm_`"
