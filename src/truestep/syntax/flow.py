"""Order of the operations of a training: of each function with the functions of the same file that it calls."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from truestep.syntax.kinds import Kind, of_name
from truestep.syntax.names import dotted, spelled
from truestep.syntax.operations import Act, Operation, Way, renamed
from truestep.syntax.places import NO_GRAD, Binding, Call, Context, Loop, Scope
from truestep.syntax.values import argument
from truestep.syntax.wrappers import Wrapper

if TYPE_CHECKING:
    from truestep.syntax.program import Program

_DEEPEST = 4
_MOST = 1500
"""Most operations of one function, with those that it calls."""
_BRANCHES = 8
"""Most branches for which all paths are read."""
_FRAMEWORK = re.compile(r"^(?:accelerator|fabric|self\.accelerator|self\.fabric|self)$")
_HARMLESS = {
    "print", "len", "isinstance", "str", "repr", "zip", "enumerate", "range", "list", "tuple", "dict", "set", "type",
    "id", "getattr", "hasattr", "next", "iter", "sum", "float", "int", "max", "min", "tqdm", "trange", "super", "vars",
    "sorted", "any", "all", "filter", "map",
}  # fmt: skip
_KNOWN_HOMES = (
    "torch.", "numpy.", "copy.", "tqdm.", "math.", "time.", "os.", "json.", "logging.", "random.", "sklearn.", "wandb.",
    "matplotlib.", "sys.", "pathlib.", "collections.", "itertools.", "functools.", "pickle.", "pandas.", "einops.",
    "torchmetrics.", "typing.", "argparse.", "warnings.", "torchvision.", "contextlib.",
)  # fmt: skip


class Flow:
    """Reads the operations of functions, loops and paths."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._of: dict[Scope, list[Operation]] = {}
        self._own: dict[Scope, list[tuple[int, Operation | Call]]] = {}
        self._open: set[Scope] = set()

    def operations(self, scope: Scope) -> list[Operation]:
        """Return the operations of a function in order, with those of the functions that it calls."""
        known = self._of.get(scope)
        if known is None:
            known = self._of[scope] = self._entered(scope, Way({}))
        return known

    def own(self, scope: Scope) -> Iterator[Operation]:
        """Yield the operations that a function has itself, without those of the functions that it calls."""
        return (one for _, one in self._read(scope) if isinstance(one, Operation))

    def of_loop(self, loop: Loop) -> list[Operation]:
        """Return the operations inside a loop in order."""
        return [one for one in self.operations(loop.scope) if loop in one.loops]

    def paths(self, operations: Sequence[Operation]) -> Iterator[list[Operation]]:
        """Yield the operations of each path through the branches around them; all of them if there are too many."""
        branches: dict[ast.AST, set[int]] = {}
        for one in operations:
            for guard in one.guards:
                branches.setdefault(guard.node, set()).add(guard.branch)
        if len(branches) > _BRANCHES:
            yield list(operations)
            return
        nodes = list(branches)
        choices = [sorted(branches[node] | ({0, 1} if isinstance(node, ast.If) else {-1})) for node in nodes]
        for chosen in itertools.product(*choices):
            taken = dict(zip(nodes, chosen, strict=True))
            yield [one for one in operations if all(taken[guard.node] == guard.branch for guard in one.guards)]

    # Reading

    def _entered(self, scope: Scope, way: Way) -> list[Operation]:
        """Return the operations of a function with those of the decorators of this file around it."""
        return self._wrapped(scope, self._program.wrappers.of(scope), way)

    def _wrapped(self, scope: Scope, wrappers: tuple[Wrapper, ...], way: Way) -> list[Operation]:
        if not wrappers:
            return self._expanded(scope, way)
        outer = wrappers[0]
        inside = replace(way, names={name: renamed(text, way.names) for name, text in outer.names.items()})
        off = way.off or any(name in NO_GRAD for name in outer.function.decorators)
        return self._expanded(
            outer.function,
            inside,
            outer.calls,
            lambda at: self._wrapped(scope, wrappers[1:], replace(at, names=way.names, off=off)),
        )

    def _expanded(
        self,
        scope: Scope,
        way: Way,
        calls: frozenset[Call] = frozenset(),
        wrapped: Callable[[Way], list[Operation]] | None = None,
    ) -> list[Operation]:
        """Return the operations of a function, with those of the function that it wraps at its calls of that one."""
        if scope in self._open:
            return []
        self._open.add(scope)
        found: list[Operation] = []
        for _, one in self._read(scope):
            if len(found) > _MOST:
                break
            here = way.at(one.context)
            if isinstance(one, Operation):
                found.append(here.moved(one))
            elif one in calls and wrapped is not None:
                found += wrapped(here)
            elif (function := self._program.resolve(one)) is not None and way.depth < _DEEPEST:
                inside = replace(
                    here,
                    names=self._passed(one, function, way.names),
                    withs=(*here.withs, *_decorators(function, self._program)),
                    via=(*way.via, one),
                    depth=way.depth + 1,
                )
                found += self._entered(function, inside)
        self._open.discard(scope)
        return found

    def _passed(self, call: Call, function: Scope, names: dict[str, str]) -> dict[str, str]:
        """Return the names that the parameters of a function have in the outermost one, and its constants."""
        inner = self._program.values.constants(call, function)
        for name in function.parameters:
            value = argument(call, function, name)
            if value is not None and (text := spelled(value)):
                inner[name] = renamed(text, names)
        if call.key and isinstance(call.node.func, ast.Attribute):
            inner["self"] = renamed(call.key, names)
        return inner

    def _read(self, scope: Scope) -> list[tuple[int, Operation | Call]]:
        known = self._own.get(scope)
        if known is not None:
            return known
        found: list[tuple[int, Operation | Call]] = []
        for call in scope.calls:
            one = self._of_call(call)
            if one is not None:
                found.append((call.order, one))
        for bindings in scope.bindings.values():
            for binding in bindings:
                act = _by_hand(binding) if binding.key.endswith(".grad") else None
                if act is not None:
                    owner = binding.key.removesuffix(".grad")
                    found.append((binding.order, self._made(act, owner, binding.node, binding.context, binding.order)))
        found.sort(key=lambda entry: entry[0])
        self._own[scope] = found
        return found

    def _made(
        self,
        act: Act,
        key: str,
        node: ast.AST,
        context: Context,
        order: int,
        call: Call | None = None,
        scaled: bool = False,
    ) -> Operation:
        assert isinstance(node, ast.expr | ast.stmt)
        return Operation(act, key, node, context, order, (), (), (), call, scaled)

    def _of_call(self, call: Call) -> Operation | Call | None:
        reader = _METHODS.get(call.method)
        if reader is not None:
            one = reader(self, call)
            if one is not None:
                return one
        if call in self._program.wrappers.calls or self._program.resolve(call) is not None:
            return call
        if "backward" in call.method and reader is None:
            return self._backward(call)
        if "zero_grad" in call.method or "clear_grad" in call.method:
            return self._operation(Act.CLEAR, call)
        forward = self._forward(call)
        return forward if forward is not None else self._unknown(call)

    def _operation(self, act: Act, call: Call, key: str | None = None, *, scaled: bool = False) -> Operation:
        if key is None:
            key = call.key or ("" if call.receiver is None else spelled(call.receiver))
        return self._made(act, key, call.node, call.context, call.order, call, scaled)

    def _clear(self, call: Call) -> Operation | None:
        return self._operation(Act.CLEAR, call) if "zero_grad" in call.method else None

    def _zero(self, call: Call) -> Operation | None:
        key = call.key
        return (
            self._operation(Act.CLEAR, call) if key.endswith((".grad", ".grad.data")) or key in ("grad", "g") else None
        )

    def _add(self, call: Call) -> Operation | None:
        owner = call.key.removesuffix(".grad")
        return self._operation(Act.ADD, call, owner) if owner != call.key else None

    def _backward(self, call: Call) -> Operation | None:
        node = call.receiver
        if node is None or call.method != "backward" or _FRAMEWORK.match(call.key) or of_name(call.key) is Kind.ENGINE:
            return self._operation(Act.BACKWARD, call, dotted(call.node.args[0]) if call.node.args else "")
        scaled = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale"
        key = dotted(node.args[0]) if scaled and isinstance(node, ast.Call) and node.args else call.key
        return self._operation(Act.BACKWARD, call, key, scaled=scaled)

    def _step(self, call: Call) -> Operation | None:
        guess = self._program.kinds.receiver(call)
        kind = None if guess is None else guess.kind
        if kind is Kind.SCALER and call.node.args:
            return self._operation(Act.STEP, call, spelled(call.node.args[0]), scaled=True)
        if kind is Kind.SCHEDULER:
            return self._operation(Act.SCHEDULE, call)
        return self._operation(Act.STEP, call) if kind is Kind.OPTIMIZER else None

    def _clip(self, call: Call) -> Operation | None:
        if call.name and not call.name.startswith("torch.nn.utils."):
            return None
        value = call.argument(0, "parameters", "model", "optimizer")
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        return self._operation(Act.CLIP, call, dotted(value) if value is not None else "")

    def _unscale(self, call: Call) -> Operation | None:
        return self._operation(Act.UNSCALE, call, spelled(call.node.args[0]) if call.node.args else "")

    def _update(self, call: Call) -> Operation | None:
        guess = self._program.kinds.receiver(call)
        scaler = guess is not None and guess.kind is Kind.SCALER
        return self._operation(Act.UPDATE, call) if scaler else None

    def _mode(self, call: Call) -> Operation | None:
        guess = self._program.kinds.receiver(call)
        if guess is None or guess.kind not in (Kind.MODEL, Kind.ENGINE) or len(call.node.args) > 1:
            return None
        if self._program.resolve(call) is not None:
            return None
        value = call.argument(0, "mode")
        on = call.method == "train"
        if value is not None:
            if not isinstance(value, ast.Constant):
                one = self._operation(Act.MODE, call)
                one.mode = dotted(value)
                return one
            on = bool(value.value)
        return self._operation(Act.TRAIN if on else Act.EVAL, call)

    def _forward(self, call: Call) -> Operation | None:
        function = call.node.func
        key = dotted(function)
        if call.method == "forward" and call.receiver is not None:
            function, key = call.receiver, call.key
        if call.name or not key or key in ("self", "super"):
            return None
        guess = self._program.kinds.of(function, call.context, call.order)
        return self._operation(Act.FORWARD, call, key) if guess is not None and guess.kind is Kind.MODEL else None

    def _unknown(self, call: Call) -> Operation | None:
        """Return a call of code elsewhere that gets objects of the training, or a method of a base class elsewhere."""
        name = call.name or call.method
        if name in _HARMLESS or call.name.startswith(_KNOWN_HOMES):
            return None
        keys = {text for value in call.arguments() if (text := dotted(value)) and self._matters(text, value, call)}
        if call.key == "self" and call.scope.owner is not None and self._foreign(call.scope.owner, call):
            keys.add("self")
        if not keys:
            return None
        one = self._operation(Act.UNKNOWN, call)
        one.keys = frozenset(keys)
        return one

    def _foreign(self, owner: Scope, call: Call) -> bool:
        """Return True if a method of `self` comes from a base class elsewhere."""
        if f"self.{call.method}" in {key for scope in self._program.inside(owner) for key in scope.bindings}:
            return False
        return any(base != "object" and not base.startswith("torch.nn.Module") for base in self._program.bases(owner))

    def _matters(self, text: str, value: ast.expr, call: Call) -> bool:
        if text in ("self", "cls"):
            return True
        guess = self._program.kinds.of(value, call.context, call.order)
        return guess is not None and guess.kind in (Kind.MODEL, Kind.OPTIMIZER, Kind.SCALER)


_METHODS = {
    "zero_grad": Flow._clear,
    "optimizer_zero_grad": Flow._clear,
    "clear_grad": Flow._clear,
    "zero_": Flow._zero,
    "add_": Flow._add,
    "backward": Flow._backward,
    "manual_backward": Flow._backward,
    "step": Flow._step,
    "clip_grad_norm_": Flow._clip,
    "clip_grad_value_": Flow._clip,
    "clip_grad_norm": Flow._clip,
    "unscale_": Flow._unscale,
    "update": Flow._update,
    "train": Flow._mode,
    "eval": Flow._mode,
}


def _by_hand(binding: Binding) -> Act | None:
    """Return the effect of an assignment to a gradient: it adds to it, or the gradient so far is lost."""
    if binding.how == "augmented":
        return Act.ADD if binding.operator == "Add" else None
    if binding.how not in ("=", "del"):
        return None
    sums = ast.walk(binding.value) if binding.value is not None else ()
    added = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add) and binding.key in map(dotted, (one.left, one.right))
        for one in sums
    )
    return Act.ADD if added else Act.CLEAR


def _decorators(function: Scope, program: Program) -> tuple[Call, ...]:
    """Return the calls that decorate a function, such as that of `torch.no_grad`."""
    if isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return tuple(program.call_at[one] for one in function.node.decorator_list if one in program.call_at)
    return ()
