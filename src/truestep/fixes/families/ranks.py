"""Trainings of several ranks."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.loops import block_of
from truestep.fixes.editing.program import Uncertain, dotted, only
from truestep.fixes.fix import Fix

_WRAPPERS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel"})


class SaveOnRankZero(Fix):
    """Save on one rank."""

    rules = ("saved-by-every-rank",)
    does = "saves on rank 0 only"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call()
        statement = self.program.statement(call)
        host = self.edits.host(statement)
        if self.names.full(call.func) != "torch.save" or not isinstance(statement, cst.Expr):
            raise Uncertain
        if not isinstance(host, cst.SimpleStatementLine) or statement.value is not call:
            raise Uncertain
        owner = self.program.parent(block_of(self.program, statement))
        if isinstance(owner, cst.If) and "rank" in self.program.code(owner.test):
            raise Uncertain
        rank = f"{self.names.local('torch.distributed', self.edits)}.get_rank()"
        test = cst.parse_expression(f"{rank} == 0")

        def guarded(node: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(node, cst.SimpleStatementLine)
            body = cst.IndentedBlock([node.with_changes(leading_lines=[])])
            return cst.If(test=test, body=body, leading_lines=node.leading_lines)

        self.edits.change(host, guarded)
        self.title = "Save on rank 0 only"


class CallWrapped(Fix):
    """Call the wrapped model, which averages the gradients of all ranks."""

    rules = ("ranks-diverge",)
    does = "calls the wrapped model, not the module inside"
    unsafe_if = "always"

    def edit(self) -> None:
        statement = self.statement()
        wrapped = {}
        for node in self.program.here(self.program.scope(statement), cst.Assign):
            made = node.value
            if isinstance(made, cst.Call) and self.names.full(made.func).rpartition(".")[2] in _WRAPPERS and made.args:
                wrapped[dotted(made.args[0].value)] = dotted(node.targets[0].target)
        found = [call for call in self.program.walk(statement, cst.Call) if dotted(call.func) in wrapped]
        call = only(found)
        inner, outer = dotted(call.func), wrapped[dotted(call.func)]
        if not inner or not outer or inner == outer:
            raise Uncertain
        self.edits.replace(call.func, outer)
        self.title = f"Call `{outer}` instead of `{inner}`"
