"""Copies that are none, and states that are not loaded."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.program import Uncertain, dotted, only
from truestep.fixes.fix import Fix


class CopyWeights(Fix):
    """Keep a copy of the weights."""

    rules = ("best-weights-aliased",)
    does = "copies the state dict by `copy.deepcopy`"

    def edit(self) -> None:
        call = self.call("state_dict")
        parent = self.program.parent(call)
        if isinstance(parent, cst.Attribute | cst.Subscript):
            raise Uncertain
        around = self.program.parent(parent) if isinstance(parent, cst.Arg) else None
        if isinstance(around, cst.Call) and dotted(around.func).rpartition(".")[2] == "deepcopy":
            raise Uncertain
        shallow = isinstance(around, cst.Call) and dotted(around.func) in ("dict", "copy.copy", "OrderedDict")
        whole = around if shallow and isinstance(around, cst.Call) else call
        copied = f"{self.names.local('copy.deepcopy', self.edits)}({self.program.code(call)})"
        self.edits.replace(whole, copied)
        self.title = f"Keep `{copied}`"


class CopyModel(Fix):
    """Keep a copy of the model."""

    rules = ("reference-is-the-model",)
    does = "copies the model by `copy.deepcopy`"
    unsafe_if = "always"

    def edit(self) -> None:
        statement = self.statement()
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or not dotted(statement.value):
            raise Uncertain
        copied = f"{self.names.local('copy.deepcopy', self.edits)}({self.program.code(statement.value)})"
        self.edits.replace(statement.value, copied)
        self.title = f"Make `{self.program.code(statement.targets[0].target)}` a copy"


class LoadState(Fix):
    """Load the state."""

    rules = ("state-not-loaded",)
    does = "calls `load_state_dict` where `state_dict(destination=...)` was called"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call("state_dict")
        passed = only(arg for arg in call.args if arg.star == "")
        if len(call.args) != 1 or (passed.keyword is not None and passed.keyword.value != "destination"):
            raise Uncertain
        owner = self.program.code(call.func).removesuffix(".state_dict")
        self.edits.replace(call, f"{owner}.load_state_dict({self.program.code(passed.value)})")
        self.title = f"Load the state into `{owner}`"


class RestoreBest(Fix):
    """Keep the weights at the other end of the range."""

    rules = ("worst-weights-kept",)
    does = "turns the comparison round, and begins at the other end of the range"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        statement = self.statement()
        test = statement.test if isinstance(statement, cst.If) else None
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            raise Uncertain
        operator, best = test.comparisons[0].operator, test.comparisons[0].comparator
        turned = {cst.GreaterThan: cst.LessThan, cst.LessThan: cst.GreaterThan}.get(type(operator))
        name = dotted(best)
        starts = [value for _, value in self.names.assignments(name, statement) if not dotted(value)] if name else []
        if turned is None or len(starts) != 1:
            raise Uncertain
        least = isinstance(operator, cst.GreaterThan)
        if f"with the {'largest' if least else 'smallest'} `" not in self.wanted.message:
            raise Uncertain
        if _is_end(self.program.code(starts[0]), least=least):
            raise Uncertain
        self.edits.change(operator, lambda _: turned())
        self.edits.replace(starts[0], 'float("inf")' if least else 'float("-inf")')
        self.title = f"Keep the weights with the {'smallest' if least else 'largest'} `{self.program.code(test.left)}`"


def _is_end(text: str, *, least: bool) -> bool:
    """Return True if a first value is the end of the range that fits the turned comparison already."""
    negative = text.startswith(("-", "float('-", 'float("-'))
    return ("inf" in text or "e" in text) and negative is not least
