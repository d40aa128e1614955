"""Losses over the wrong shapes, windows or positions."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.loops import block_of, in_block, loop_of
from truestep.fixes.editing.program import Uncertain, argument, dotted, method, receiver
from truestep.fixes.editing.tracing import loss_name
from truestep.fixes.fix import Fix


class AlignTarget(Fix):
    """Squeeze the side that has one dimension more."""

    rules = ("broadcast-target",)
    does = "squeezes the predictions or the targets in the call of the loss"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        call = self.call()
        side = re.match(r"squeeze the (input|target)", self.wanted.help)
        if side is None:
            raise Uncertain
        passed = argument(call, 0 if side[1] == "input" else 1, side[1])
        if passed is None:
            raise Uncertain
        value = passed.value
        text = self.program.code(
            self.edits.expression(self.program.code(value), cst.Attribute(cst.Name("a"), cst.Name("b")))
        )
        self.edits.replace(value, f"{text}.squeeze(-1)")
        self.title = f"Squeeze the {'predictions' if side[1] == 'input' else 'targets'}"


class IgnorePadding(Fix):
    """Ignore the padding in the loss."""

    rules = ("padding-in-loss",)
    does = "passes `ignore_index` to the loss"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        index = re.search(r"`ignore_index=(-?\d+)`", self.wanted.help)
        kind, settings = loss_name(self.names, self.call())
        if index is None or kind not in ("CrossEntropyLoss", "cross_entropy", "NLLLoss", "nll_loss"):
            raise Uncertain
        place = 2 if kind in ("CrossEntropyLoss", "NLLLoss") else 4
        if argument(settings, place, "ignore_index") is not None:
            raise Uncertain
        self.edits.add_argument(settings, f"ignore_index={index[1]}")
        self.title = f"Ignore the padding, `ignore_index={index[1]}`"


class DivideWindow(Fix):
    """Divide the loss by the number of batches of a window."""

    rules = ("accumulation-not-normalised",)
    does = "divides the loss by the number of batches per step, which the condition of the step or the loop names"
    unsafe_if = "always"

    def edit(self) -> None:
        backward = self.call("backward")
        count = self._count(backward)
        loss = receiver(backward)
        if any(isinstance(one, cst.Divide) or method(one) in ("div", "div_") for one in self.program.all(loss)):
            raise Uncertain  # it is divided already
        if isinstance(loss, cst.Call) and method(loss) == "scale" and len(loss.args) == 1:
            inner = loss.args[0].value
            self.edits.replace(inner, f"{self._operand(inner)} / {count}")
        else:
            self.edits.replace(loss, f"{self._operand(loss)} / {count}")
        self.title = f"Divide the loss by `{count}`"

    def _operand(self, node: cst.BaseExpression) -> str:
        parent = cst.BinaryOperation(cst.Name("a"), cst.Divide(), cst.Name("b"))
        return self.program.code(self.edits.expression(self.program.code(node), parent))

    def _count(self, backward: cst.Call) -> str:
        """Return the number of backward passes per step.

        Raises:
            Uncertain: neither the condition of the step nor a loop inside of the one with the step names it.
        """
        step = self.call_near("step")
        loop = loop_of(self.program, backward)
        if step is None or loop is None:
            raise Uncertain
        outer = loop_of(self.program, step)
        if outer is loop:
            return self._of_condition(step, loop)
        if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "range":
            if len(loop.iter.args) == 1 and (outer is None or self.program.inside(loop, outer)):
                return self._plain(loop.iter.args[0].value)
        raise Uncertain

    def _of_condition(self, step: cst.Call, loop: cst.For | cst.While) -> str:
        found = []
        for parent in self.program.ancestors(step):
            if parent is loop:
                break
            if isinstance(parent, cst.If):
                tests = self.program.walk(parent.test, cst.BinaryOperation)
                found += [self._plain(node.right) for node in tests if isinstance(node.operator, cst.Modulo)]
        if len(found) != 1:
            raise Uncertain
        return found[0]

    def _plain(self, node: cst.BaseExpression) -> str:
        if not isinstance(node, cst.Integer) and not dotted(node):
            raise Uncertain
        return self.program.code(node)


class StepOnRest(Fix):
    """Step on the last window too."""

    rules = ("accumulation-window-dropped",)
    does = "steps on the remaining batches at the end of the loader too"
    unsafe_if = "always"

    def edit(self) -> None:
        step = self.call("step")
        loop = loop_of(self.program, step)
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            raise Uncertain
        count, loader, start = self._counted(loop)
        condition = in_block(self.program, step, loop.body)
        if not isinstance(condition, cst.If) or condition.orelse is not None:
            raise Uncertain
        test = condition.test
        if block_of(self.program, self.program.statement(step)) is not condition.body or not isinstance(
            test, cst.Comparison
        ):
            raise Uncertain
        ended = count if start == 1 else f"{count} + 1"
        pattern = re.compile(rf"\(?{re.escape(count)}( \+ 1)?\)? % [\w.]+ == 0")
        if pattern.fullmatch(self.program.code(test)) is None or (start == 0) is not ("+ 1" in self.program.code(test)):
            raise Uncertain
        self.edits.replace(test, f"{self.program.code(test)} or {ended} == len({loader})")
        self.title = f"Step at the end of `{loader}` too"

    def _counted(self, loop: cst.For) -> tuple[str, str, int]:
        """Return the number of a batch, the loader, and the first number."""
        assert isinstance(loop.iter, cst.Call)
        if dotted(loop.iter.func) != "enumerate" or not isinstance(loop.target, cst.Tuple):
            raise Uncertain
        first = argument(loop.iter, 1, "start")
        count, loader = dotted(loop.target.elements[0].value), argument(loop.iter, 0, "iterable")
        if not count or loader is None or not dotted(loader.value):
            raise Uncertain
        start = self.program.code(first.value) if first is not None else "0"
        if start not in ("0", "1"):
            raise Uncertain
        return count, dotted(loader.value), int(start)


class AddToSum(Fix):
    """Add each term to the sum."""

    rules = ("sum-overwritten",)
    does = "adds each term to the sum that was begun with zero before the loop"
    unsafe_if = "always"

    def edit(self) -> None:
        statement = self.statement()
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            raise Uncertain
        name, loop = dotted(statement.targets[0].target), loop_of(self.program, statement)
        if not name or loop is None or name in {dotted(node) for node in self.program.walk(statement.value, cst.Name)}:
            raise Uncertain
        zero = re.compile(r"0(\.0*)?|torch\.zeros\(.*\)|torch\.tensor\(0(\.0*)?\)")
        begun = [
            one
            for one, value in self.names.assignments(name, statement)
            if not self.program.inside(one, loop) and zero.fullmatch(self.program.code(value))
        ]
        if len(begun) != 1 or len(self.names.assignments(name, statement)) != 2:
            raise Uncertain
        self.edits.replace(statement.value, f"{name} + {self._operand(statement.value)}")
        self.title = f"Add to `{name}`"

    def _operand(self, node: cst.BaseExpression) -> str:
        parent = cst.BinaryOperation(cst.Name("a"), cst.Add(), cst.Name("b"))
        return self.program.code(self.edits.expression(self.program.code(node), parent))


class DrawWithGradient(Fix):
    """Draw with a gradient."""

    rules = ("sample-without-gradient",)
    does = "draws with `rsample()`"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call("sample")
        if not isinstance(call.func, cst.Attribute):
            raise Uncertain
        self.edits.replace(call.func.attr, cst.Name("rsample"))
        self.title = "Draw with `rsample()`"
