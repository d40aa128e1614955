"""Graphs that are kept, retained, or reach back too far."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.loops import block_of, calls, loop_of
from truestep.fixes.editing.names import is_parameter
from truestep.fixes.editing.program import Uncertain, argument, dotted, method, only, receiver
from truestep.fixes.fix import Fix

_KEEPS = frozenset({"append", "add", "appendleft", "insert", "extend", "update", "setdefault"})
_TENSOR_STATES = frozenset({"GRU", "RNN", "GRUCell", "RNNCell"})
_PAIR_STATES = frozenset({"LSTM"})


class KeepNumber(Fix):
    """Keep the loss without its graph."""

    rules = ("loss-kept-with-graph",)
    does = "keeps the tensor without its graph, by `detach()`"

    def edit(self) -> None:
        statement = self.statement()
        if isinstance(statement, cst.AugAssign):
            kept = statement.value
        elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            call = statement.value
            if method(call) not in _KEEPS or not call.args or any(arg.star for arg in call.args):
                raise Uncertain
            if method(call) in ("extend", "update", "setdefault"):
                raise Uncertain
            kept = call.args[-1].value
        elif isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            kept = self._assigned(statement)
        else:
            raise Uncertain
        if isinstance(kept, cst.Tuple | cst.List | cst.Dict | cst.BaseComp) or _is_free(kept) or self._is_passed(kept):
            raise Uncertain
        detached = self.edits.expression(self.program.code(kept), cst.Attribute(cst.Name("x"), cst.Name("y")))
        self.edits.replace(kept, cst.Call(cst.Attribute(detached, cst.Name("detach"))))
        self.title = f"Keep `{self.program.code(kept)}` without its graph"

    def _is_passed(self, kept: cst.BaseExpression) -> bool:
        """Return True if a value comes from the caller of the function, who may pass numbers as well."""
        function = self.program.function(kept)
        return isinstance(function, cst.FunctionDef) and any(
            is_parameter(function, node.value) for node in self.program.walk(kept, cst.Name) if node.value != "self"
        )

    def _assigned(self, statement: cst.Assign) -> cst.BaseExpression:
        """Return the value that ``total = total + loss`` adds, or ``history[key] = loss`` keeps."""
        target, value = statement.targets[0].target, statement.value
        if isinstance(target, cst.Subscript):
            return value
        name = dotted(target)
        if not name or not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
            raise Uncertain
        if dotted(value.left) == name:
            return value.right
        if dotted(value.right) == name:
            return value.left
        raise Uncertain


def _is_free(node: cst.BaseExpression) -> bool:
    """Return True if a value has no graph: a number, or the result of `item()` or `detach()`."""
    free = isinstance(node, cst.Call) and method(node) in ("item", "detach", "tolist", "numpy")
    return free or isinstance(node, cst.BaseNumber | cst.BaseString)


class FreeGraph(Fix):
    """Let the backward pass free its graph."""

    rules = ("retain-graph-in-loop",)
    does = "removes `retain_graph=True`"

    def edit(self) -> None:
        call = self.call("backward")
        kept = argument(call, 1, "retain_graph")
        if kept is None or kept.keyword is None or dotted(kept.value) != "True":
            raise Uncertain
        if self._is_carried(backward=call):
            raise Uncertain
        self.edits.drop_argument(call, kept)
        self.title = "Remove `retain_graph=True`"

    def _is_carried(self, backward: cst.Call) -> bool:
        """Return True if the loop computes a value from the one of the pass before, which may have a graph."""
        loop = loop_of(self.program, backward)
        for one in self.program.here(loop, cst.Assign) if loop is not None else ():
            assigned = {dotted(target) for target in _targets(one)} - {""}
            used = {dotted(node) for node in self.program.walk(one.value, cst.Name, cst.Attribute)}
            if assigned & used and (used - assigned or isinstance(one.value, cst.Call)) and not _is_free(one.value):
                return True
        return False


def _targets(statement: cst.Assign) -> list[cst.BaseExpression]:
    """Return the names and attributes that a statement assigns."""
    found: list[cst.BaseExpression] = []
    for one in statement.targets:
        target = one.target
        found += [part.value for part in target.elements] if isinstance(target, cst.Tuple | cst.List) else [target]
    return found


class DetachState(Fix):
    """Detach the state that is carried to the next step."""

    rules = ("hidden-state-not-detached",)
    does = "detaches the carried state after the backward pass, and removes `retain_graph=True`"

    def edit(self) -> None:
        backward = self.call("backward")
        loop, statement = loop_of(self.program, backward), self.program.statement(backward)
        if loop is None or not isinstance(statement, cst.Expr) or block_of(self.program, statement) is not loop.body:
            raise Uncertain
        state, call = only(self._carried(loop))
        text = self._detached(state, call)
        later = (
            node
            for node in self.program.walk(loop, cst.Call)
            if method(node) in ("detach", "detach_") and self.program.code(receiver(node)) == state
        )
        if any(True for _ in later):
            raise Uncertain
        kept = argument(backward, 1, "retain_graph")
        if kept is not None and kept.keyword is not None:
            self.edits.drop_argument(backward, kept)
        self.edits.insert("after", statement, text)
        self.title = f"Detach `{state}` after the backward pass"

    def _carried(self, loop: cst.For | cst.While) -> list[tuple[str, cst.Call]]:
        """Return the names that a call in a loop gets and gives again, with the call."""
        found: dict[str, cst.Call] = {}
        for one in self.program.here(loop, cst.Assign):
            target = one.targets[0].target
            if not isinstance(one.value, cst.Call) or len(one.targets) != 1:
                continue
            given = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
            taken = {self.program.code(arg.value) for arg in one.value.args}
            for name in (self.program.code(node) for node in given):
                if name in taken:
                    found[name] = one.value
        return list(found.items())

    def _detached(self, state: str, call: cst.Call) -> str:
        """Return the statement that detaches a state.

        Raises:
            Uncertain: it is unknown whether the state is a tensor or a pair of them.
        """
        made = self.names.made(call.func, call)
        full = self.names.full(made.func) if isinstance(made, cst.Call) else ""
        kind = full.rpartition(".")[2] if full.startswith("torch.nn.") else self._inner(made)
        if kind in _TENSOR_STATES:
            return f"{state} = {state}.detach()"
        if kind in _PAIR_STATES and (state.isidentifier() or state.startswith("self.")):
            return f"{state} = tuple(part.detach() for part in {state})"
        raise Uncertain

    def _inner(self, made: cst.BaseExpression) -> str:
        """Return the only recurrent layer that a class of this file makes; empty if there are several."""
        kind = self.names.class_of(made)
        if kind is None:
            return ""
        names = {self.names.full(call.func) for call in self.program.walk(kind, cst.Call)}
        layers = {name.rpartition(".")[2] for name in names if name.startswith("torch.nn.")}
        recurrent = layers & {*_TENSOR_STATES, *_PAIR_STATES, "LSTMCell"}
        return recurrent.pop() if len(recurrent) == 1 else ""


class NoAnomalyMode(Fix):
    """Remove the search for NaN."""

    rules = ("anomaly-mode-left-on",)
    does = "removes `set_detect_anomaly(True)`"

    def edit(self) -> None:
        call = self.call()
        statement = self.program.statement(call)
        full = self.names.full(call.func)
        on = len(call.args) == 1 and dotted(call.args[0].value) == "True"
        if not isinstance(statement, cst.Expr) or statement.value is not call or not on:
            raise Uncertain
        if full != "torch.autograd.set_detect_anomaly":
            raise Uncertain
        self.edits.remove(statement)
        self.title = f"Remove `{self.program.code(call)}`"


class DifferentiateOnce(Fix):
    """Leave one of two backward passes of a loss."""

    rules = ("loss-differentiated-twice",)
    does = "removes the second of two backward passes of a loss that follow each other"
    unsafe_if = "always"

    def edit(self) -> None:
        second = self.call("backward")
        statement = self.program.statement(second)
        block = block_of(self.program, statement)
        first = only(
            call
            for call in calls(self.program, block, "backward")
            if call is not second and self.program.code(receiver(call)) == self.program.code(receiver(second))
        )
        before = self.program.statement(first)
        between = self.program.line(statement) - self.program.line(before)
        if not isinstance(before, cst.Expr) or not isinstance(statement, cst.Expr) or not 0 <= between <= 1:
            raise Uncertain
        kept = argument(first, 1, "retain_graph")
        if kept is None or kept.keyword is None:
            raise Uncertain
        self.edits.drop_argument(first, kept)
        self.edits.remove(statement)
        self.title = "Remove the second backward pass"
