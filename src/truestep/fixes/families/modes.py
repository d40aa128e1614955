"""Train and eval mode, and gradients that are off in an evaluation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from truestep.fixes.editing.edits import first_of, statements_of
from truestep.fixes.editing.loops import block_of, bound, calls, loop_of, loops_of, trains
from truestep.fixes.editing.program import Statement, Uncertain, dotted, method, only, receiver
from truestep.fixes.fix import Fix

_EVALUATES = re.compile(r"eval|valid|test|acc|predict|infer|score|metric|sample|generat", re.IGNORECASE)


class _Evaluation(Fix):
    """Shared parts: the model of a call, and the whole evaluation around it."""

    def model(self, call: cst.Call) -> str:
        """Return the name of the model that a call calls.

        Raises:
            Uncertain: it has no name, or is a part of the model, called in its `forward`.
        """
        name = dotted(call.func)
        function = self.program.function(call)
        if not name or isinstance(function, cst.Lambda):
            raise Uncertain
        if isinstance(function, cst.FunctionDef) and function.name.value in ("forward", "__call__"):
            raise Uncertain
        return name

    def evaluation(self, call: cst.Call) -> Statement:
        """Return the largest statement around a call that does not train: the loop over batches, or `with` around it.

        Raises:
            Uncertain: the call is in a statement that trains.
        """
        statement = self.program.statement(call)
        if trains(self.program, statement):
            raise Uncertain
        function = self.program.scope(call)
        found = statement
        for parent in self.program.ancestors(statement):
            if parent is function:
                break
            if isinstance(parent, cst.FunctionDef | cst.ClassDef) or trains(self.program, parent):
                break
            if isinstance(parent, cst.For | cst.While | cst.With | cst.Try):  # the `if` around it stays outside
                found = parent
        return found


class EvaluateInEvalMode(_Evaluation):
    """Switch to eval mode before the evaluation, and back where nothing else does."""

    rules = ("eval-mode-missing",)
    does = "calls `eval()` of the model before the evaluation, and `train()` after it where nothing else does"

    def edit(self) -> None:
        call = self.call()
        model = self.model(call)
        evaluation = self.evaluation(call)
        scope = self.program.scope(call)
        switched = [one for one in calls(self.program, scope, "eval") if self.program.code(receiver(one)) == model]
        if switched:
            raise Uncertain
        first = self._first(evaluation, model)
        self.edits.insert("before", first, f"{model}.eval()")
        self.title = f"Call `{model}.eval()` before the evaluation"
        if "serves the training of another model" in self.wanted.message:
            loops = loops_of(self.program, call)
            if not loops or model in {name for loop in loops for name in bound(self.program, loop)}:
                raise Uncertain
            self.edits = type(self.edits)(self.program)
            self.edits.insert("before", loops[-1], f"{model}.eval()")
            self.title = f"Call `{model}.eval()` before the training"
        elif not self._returns_to_train_mode(call, evaluation):
            if any(True for _ in self.program.here(evaluation, cst.Return)) or isinstance(evaluation, cst.Return):
                raise Uncertain
            self.edits.insert("after", evaluation, f"{model}.train()")
            self.title += f", and `{model}.train()` after it"

    def _first(self, evaluation: Statement, model: str) -> Statement:
        """Return the statement before which to switch: the evaluation, or the first of a function that evaluates."""
        function = self.program.function(evaluation)
        name = model.partition(".")[0]
        if isinstance(function, cst.FunctionDef) and not trains(self.program, function):
            body = function.body
            if block_of(self.program, evaluation) is body:
                before = statements_of(body)
                place = before.index(evaluation)
                if not any(name in bound(self.program, one) for one in before[:place]):
                    return first_of(body)
        return evaluation

    def _returns_to_train_mode(self, call: cst.Call, evaluation: Statement) -> bool:
        """Return True if the model is switched to train mode again for each epoch, or is not trained any more."""
        function = self.program.function(call)
        if not self._may_be_trained(call):
            return True
        for switch in self.program.walk(self.program.module, cst.Call):
            if method(switch) != "train" or switch.args:
                continue
            outer = self.program.function(switch)
            loop = loop_of(self.program, switch)
            if loop is not None and not (outer is function and self.program.inside(switch, evaluation)):
                if outer is not function or loop in loops_of(self.program, evaluation):
                    return True
            if outer is not None and outer is not function and loop is None and self._trains_there(outer):
                return True
        if function is None and loop_of(self.program, evaluation) is None:
            rest = [one for one in self.program.module.body if self.program.line(one) > self.program.line(evaluation)]
            return not any(trains(self.program, one) for one in rest) and not self._calls_training(rest)
        return False

    def _may_be_trained(self, call: cst.Call) -> bool:
        """Return False if the optimizers of the file are made of the parameters of other models."""
        name = dotted(call.func)
        if not self.names.assignments(name, call):
            return True
        made = [
            self.program.code(one)
            for one in self.program.walk(self.program.module, cst.Call)
            if self.names.full(one.func).startswith("torch.optim.")
            and ".lr_scheduler." not in self.names.full(one.func)
        ]
        alone = re.compile(
            rf"(?<![\w.]){re.escape(name.removeprefix('self.'))}\b|self\.{re.escape(name.removeprefix('self.'))}\b"
        )
        direct = all(".parameters()" in text for text in made)
        return not made or not direct or any(alone.search(text) for text in made)

    def _trains_there(self, function: cst.CSTNode) -> bool:
        return trains(self.program, function)

    def _calls_training(self, lines: Sequence[cst.CSTNode]) -> bool:
        """Return True if one of the lines calls a function of this file that trains."""
        training = {
            node.name.value
            for node in self.program.nodes
            if isinstance(node, cst.FunctionDef) and trains(self.program, node)
        }
        called = (dotted(call.func).rpartition(".")[2] for line in lines for call in self.program.walk(line, cst.Call))
        return any(name in training for name in called)


class RestoreTrainMode(_Evaluation):
    """Switch to train mode at the start of each epoch."""

    rules = ("train-mode-not-restored",)
    does = "calls `train()` of the model before each pass over the training data"

    def edit(self) -> None:
        call = self.call()
        model = self.model(call)
        loops = loops_of(self.program, call)
        if not loops or "throughout" in self.wanted.message or "first step to the last" in self.wanted.message:
            raise Uncertain
        batches = loops[0]
        if isinstance(call.func, cst.Attribute) and not model.startswith("self."):
            raise Uncertain
        if self._evaluates_inside(batches):
            place, where = first_of(batches.body), "in the loop over batches"
        else:
            place, where = batches, "for each epoch"
            if len(loops) == 1 and self.program.function(call) is None:
                raise Uncertain  # the loop runs once: the evaluation was before it
        scope = self.program.scope(call)
        switches = [
            one
            for one in calls(self.program, scope, "train")
            if self.program.code(receiver(one)) == model and not one.args
        ]
        if any(self.program.inside(one, batches if place is not batches else loops[-1]) for one in switches):
            raise Uncertain
        before = [one for one in switches if self._is_alone_before(one, loops[-1])]
        if len(before) == 1 and place is batches:
            self.edits.move(self.program.statement(before[0]), "before", place)
        else:
            self.edits.insert("before", place, f"{model}.train()")
        self.title = f"Call `{model}.train()` {where}"

    def _evaluates_inside(self, loop: cst.For | cst.While) -> bool:
        """Return True if the evaluation, which set eval mode, is called inside of a loop."""
        for site in self.wanted.related:
            try:
                statement = self.program.statement_at(site)
            except Uncertain:
                continue
            if self.program.inside(statement, loop):
                return True
            function = self.program.function(statement)
            if isinstance(function, cst.FunctionDef):
                name = function.name.value
                called = self.program.here(loop, cst.Call)
                return any(dotted(call.func).rpartition(".")[2] == name for call in called)
        return False

    def _is_alone_before(self, call: cst.Call, loop: cst.CSTNode) -> bool:
        """Return True if a switch stands in the block of a loop, before it."""
        statement = self.program.statement(call)
        same = isinstance(statement, cst.Expr) and block_of(self.program, statement) is block_of(
            self.program,
            loop,  # type: ignore[arg-type]
        )
        return same and self.program.line(statement) < self.program.line(loop)


class EvaluateWithoutGrad(_Evaluation):
    """Record no graph in the evaluation."""

    rules = ("no-grad-missing",)
    does = "decorates the function that evaluates with `torch.no_grad()`, or writes `with torch.no_grad():` around it"

    def edit(self) -> None:
        call = self.call()
        function = self.program.function(call)
        if self._is_off(call):
            raise Uncertain
        no_grad = f"{self.names.local('torch.no_grad', self.edits)}()"
        if isinstance(function, cst.FunctionDef):
            if function.name.value in ("forward", "__call__") or self._needs_graphs(function):
                self._around(call, no_grad)
                return
            loop = any(True for _ in self.program.here(function, cst.For, cst.While))
            switched = any(True for _ in calls(self.program, function, "eval"))
            if not (loop or switched or _EVALUATES.search(function.name.value)):
                raise Uncertain
            decorator = cst.Decorator(cst.parse_expression(no_grad))
            self.edits.change(function, lambda node: _decorated(node, decorator))
            self.title = f"Decorate `{function.name.value}` with `@{no_grad}`"
        else:
            self._around(call, no_grad)

    def _around(self, call: cst.Call, no_grad: str) -> None:
        function = self.program.function(call)
        if isinstance(function, cst.Lambda) or (
            function is not None and function.name.value in ("forward", "__call__")
        ):
            raise Uncertain
        evaluation = self.evaluation(call)
        host = self.edits.host(evaluation)
        if not isinstance(host, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            raise Uncertain
        if isinstance(self.program.parent(host), cst.If):  # the `elif` of another one
            raise Uncertain
        self.edits.change(host, lambda node: _within(node, no_grad))
        self.title = f"Evaluate in `with {no_grad}:`"

    def _is_off(self, call: cst.Call) -> bool:
        """Return True if gradients are off around a call already."""
        for parent in self.program.ancestors(call):
            heads: list[cst.CSTNode] = []
            if isinstance(parent, cst.With):
                heads = list(parent.items)
            elif isinstance(parent, cst.FunctionDef):
                heads = list(parent.decorators)
            code = " ".join(self.program.code(head) for head in heads)
            if re.search(r"no_grad|inference_mode|set_grad_enabled", code):
                return True
        return False

    def _needs_graphs(self, function: cst.FunctionDef) -> bool:
        text = self.program.code(function)
        is_generator = any(True for _ in self.program.here(function, cst.Yield))
        return (
            is_generator or trains(self.program, function) or bool(re.search(r"autograd|requires_grad|zero_grad", text))
        )


def _decorated(node: cst.CSTNode, decorator: cst.Decorator) -> cst.CSTNode:
    assert isinstance(node, cst.FunctionDef)
    # A static method or a class method must stay outermost.
    return node.with_changes(decorators=[*node.decorators, decorator])


def _within(node: cst.CSTNode, context: str) -> cst.CSTNode:
    assert isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    above = list(node.leading_lines)
    body = cst.IndentedBlock([node.with_changes(leading_lines=[])])
    return cst.With(items=[cst.WithItem(cst.parse_expression(context))], body=body, leading_lines=above)


class FreezeStatistics(Fix):
    """Hold the frozen part in eval mode."""

    rules = ("frozen-statistics-move",)
    does = "calls `eval()` of the frozen part after `train()` of the whole model"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call("train")
        statement = self.program.statement(call)
        if not isinstance(statement, cst.Expr) or statement.value is not call or call.args:
            raise Uncertain
        frozen = {
            self.program.code(receiver(one))
            for one in self.program.walk(self.program.module, cst.Call)
            if method(one) == "requires_grad_" and [self.program.code(arg.value) for arg in one.args] == ["False"]
        }
        part = only(name for name in frozen if re.fullmatch(r"[\w.]+", name))
        evals = calls(self.program, self.program.scope(call), "eval")
        if any(self.program.code(receiver(one)) == part for one in evals):
            raise Uncertain
        self.edits.insert("after", statement, f"{part}.eval()")
        self.title = f"Call `{part}.eval()` after `{self.program.code(call)}`"
