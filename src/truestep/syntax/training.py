"""A training loop, or a function that takes one step: the gradients between two steps."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truestep.syntax.kinds import Kind
from truestep.syntax.names import dotted
from truestep.syntax.operations import Act, Operation
from truestep.syntax.places import Call, Context, Loop, Scope
from truestep.syntax.values import names_in

if TYPE_CHECKING:
    from truestep.syntax.program import Program


@dataclass(slots=True, eq=False)
class Step:
    """A step of an optimizer in a training loop."""

    operation: Operation
    optimizer: str
    """Text of the optimizer, in the names of the loop's function."""
    built: Call | None
    """The call that made the optimizer, if it is in this file."""
    sure: bool
    """Whether its construction or an annotation shows that it is an optimizer."""
    guarded: bool
    """Whether some passes of the loop leave the step out."""

    @property
    def node(self) -> ast.expr | ast.stmt:
        return self.operation.node


class Training:
    """The innermost loop around steps of an optimizer, or a function that takes a step, with all that they call.

    Args:
        program: the file.
        scope: the function.
        loop: the loop in it; None for a function without a loop around its steps that this file does not call.
        operations: those inside, in order.
    """

    def __init__(self, program: Program, scope: Scope, loop: Loop | None, operations: list[Operation]) -> None:
        self.program = program
        self.scope = scope
        self.loop = loop
        self.operations = operations
        self._paths: list[list[Operation]] | None = None

    def of(self, *acts: Act) -> list[Operation]:
        """Return the operations of some kinds inside the loop."""
        return [one for one in self.operations if one.act in acts]

    def direct(self, *acts: Act) -> list[Operation]:
        """Return the operations of some kinds that are in no loop inside this one."""
        return [one for one in self.operations if one.act in acts and (one.loops[-1:] or (None,))[0] is self.loop]

    @functools.cached_property
    def all_steps(self) -> list[Step]:
        """Return the steps of the loop, also of optimizers that it makes."""
        return [self._step(one) for one in self.direct(Act.STEP)]

    def made_inside(self, value: ast.expr, built: Call) -> bool:
        """Return True if the loop makes the model of parameters that an optimizer is built on."""
        for name in names_in(value):
            if any(self.around(one.context) for one in self.program.values.bindings(name, built.scope)):
                return True
        return False

    @functools.cached_property
    def steps(self) -> list[Step]:
        """Return the steps on gradients that the loop computes: closures and optimizers made in the loop left out."""
        found = []
        for one in self.direct(Act.STEP):
            step = self._step(one)
            closure = one.call is not None and not one.scaled and (one.call.node.args or one.call.node.keywords)
            fresh = step.built is not None and self.around(step.built.context)
            if not closure and not fresh and not self._fresh(step.optimizer):
                found.append(step)
        return found

    def _fresh(self, key: str) -> bool:
        bindings = self.program.values.bindings(key, self.scope) if key else []
        return any(one.how != "parameter" and self.around(one.context) for one in bindings)

    def around(self, context: Context) -> bool:
        """Return True if something runs in each pass of the loop; for a function, in each call."""
        if self.loop is None:
            return context.scope is self.scope
        return context.loop is not None and context.loop.within(self.loop)

    def _step(self, one: Operation) -> Step:
        call = one.call
        assert call is not None
        node = call.node.args[0] if one.scaled and call.node.args else call.receiver
        assert node is not None
        guess = self.program.kinds.of(node, call.context, call.order)
        built = self.program.call_at.get(self.program.values.maker(node, call.context, call.order))
        inside = one.guards if self.loop is None else one.guards[len(self.loop.guards) :]
        sure = guess is not None and guess.kind is Kind.OPTIMIZER and guess.sure
        return Step(one, one.key or dotted(node) or "optimizer", built, sure, bool(inside))

    def model(self, step: Step) -> str:
        """Return the text of the model that an optimizer was built on; "" if it is not one model."""
        return "" if step.built is None else _model(step.built)

    def backward_before(self, step: Step) -> Operation | None:
        """Return the nearest backward pass before a step, else the last one after it."""
        passes = self.of(Act.BACKWARD)
        place = self.operations.index(step.operation)
        before = [one for one in passes if self.operations.index(one) < place and not _exclusive(one, step.operation)]
        return before[-1] if before else passes[-1] if passes else None

    def concerns(self, one: Operation, step: Step) -> bool:
        """Return True if an operation may act on the gradients of a step: unless both optimizers or models differ."""
        if not one.key or one.key == step.optimizer or one.key == self.model(step):
            return True
        other = self._built(one)
        if other is not None and step.built is not None:
            if other is step.built:
                return True
            if other.name.startswith("torch.optim."):
                mine, its = self.model(step), _model(other)
                return not mine or not its or mine == its
        return not (self._is_optimizer(one) and other is not None)

    def same(self, one: Operation, step: Step) -> bool:
        """Return True if an operation certainly acts on the gradients of a step."""
        if one.key and (one.key == step.optimizer or one.key == self.model(step)):
            return True
        call, node = one.call, None if one.call is None else one.call.receiver
        value = None if step.built is None else step.built.argument(0, "params")
        if call is None or node is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return False
        assert step.built is not None
        values = self.program.values
        built = values.identity(value.func.value, step.built.context, step.built.order)
        return value.func.attr == "parameters" and values.identity(node, call.context, call.order) == built

    def _built(self, one: Operation) -> Call | None:
        node = None if one.call is None else one.call.receiver
        if node is None or one.call is None:
            return None
        return self.program.call_at.get(self.program.values.origin(node, one.call.context, one.call.order)[0])

    def _is_optimizer(self, one: Operation) -> bool:
        guess = None if one.call is None else self.program.kinds.receiver(one.call)
        return guess is not None and guess.kind is Kind.OPTIMIZER

    def cleared(self, step: Step) -> bool:
        """Return True if something in the loop may clear the gradients of a step."""
        return any(self.concerns(one, step) for one in self.of(Act.CLEAR))

    def cleared_in_file(self, step: Step) -> bool:
        """Return True if something in the file may clear the gradients of a step, other than once at its start."""
        flow = self.program.flow
        everywhere = [one for scope in self.program.scopes for one in flow.own(scope) if one.act is Act.CLEAR]
        if self.program.mentions("zero_grad"):
            return True
        return any(self.concerns(one, step) for one in everywhere if not _once(one))

    def cleared_around(self, step: Step) -> Operation | None:
        """Return the call that clears the gradients of a step in the loop around this one, but not inside it."""
        outer = None if self.loop is None else self.loop.parent
        if outer is None:
            return None
        around = [one for one in self.program.flow.of_loop(outer) if self.loop not in one.loops]
        clears = [one for one in around if one.act is Act.CLEAR and self.concerns(one, step)]
        found = [one for one in clears if one.loops[-1] is outer and one.call is not None]
        return found[0] if len(found) == len(clears) and found else None

    def left_to_others(self, step: Step) -> bool:
        """Return True if code that is not in this file gets the optimizer, or `self`."""
        keys = {key for one in self.of(Act.UNKNOWN) for key in one.keys}
        return bool(keys & {step.optimizer, "self"})

    def shown_to_others(self, step: Step) -> bool:
        """Return True if code that is not in this file gets the model."""
        model = self.model(step)
        keys = {key for one in self.of(Act.UNKNOWN) for key in one.keys}
        return bool(keys) and (not model or model in keys)

    def sure(self, step: Step) -> bool:
        """Return True if the step is certainly one of an optimizer, and all that happens to its gradients is here."""
        return step.sure and not self.shown_to_others(step) and not self.left_to_others(step)

    def reads_gradients(self) -> bool:
        """Return True if the functions of the loop read or write gradients by themselves."""
        scopes = {one.context.scope for one in self.operations}
        return any(
            key.endswith(".grad") or ".grad." in key for scope in scopes for key in (*scope.loads, *scope.bindings)
        )

    def paths(self) -> Iterator[list[Operation]]:
        """Yield the operations of each path through one pass of the loop."""
        if self._paths is None:
            self._paths = list(self.program.flow.paths(self.operations))
        return iter(self._paths)

    def nearest(self, one: Operation, *acts: Act) -> list[tuple[Operation | None, Operation | None]]:
        """Return, for each path with an operation, the nearest operations of some kinds before and behind it."""
        found = []
        for path in self.paths():
            if one not in path:
                continue
            place = path.index(one)
            before = next((each for each in reversed(path[:place]) if each.act in acts), None)
            behind = next((each for each in path[place + 1 :] if each.act in acts), None)
            found.append((before, behind))
        return found


def _once(one: Operation) -> bool:
    """Return True if an operation runs once: in the code of the module or in `__init__`, outside of loops."""
    scope = one.context.scope
    return one.context.loop is None and (scope.kind == "module" or scope.name.endswith(".__init__"))


def _model(built: Call) -> str:
    value = built.argument(0, "params")
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parameters":
        return dotted(value.func.value)
    return ""


def _exclusive(one: Operation, other: Operation) -> bool:
    branches = dict(one.guards)
    return any(branches.get(node, branch) != branch for node, branch in other.guards)
