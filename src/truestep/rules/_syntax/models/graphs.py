"""Graphs that are cut, kept or carried along, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.models.modules import is_layer
from truestep.syntax import Act, Binding, Call, Loop, Program, Scope, Suspicion, Training, dotted, names_in


def retain_graph_in_loop(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes of a training loop that retain their graph, with no other pass to use it."""
    passes = [call for call in program.method("backward") if call.receiver is not None]
    for call in passes:
        if not _retains(call) or len(passes) != 1 or call.argument(-1, "create_graph") is not None:
            continue
        training = _loop_of(call, program)
        if training is None or training.loop is None or program.method("grad") or training.reads_gradients():
            continue
        if carried(training.loop, program):
            continue
        yield Suspicion(
            call.node,
            "every backward pass retains its graph, and no other pass uses one",
            "keeps the memory of the graph",
            "remove `retain_graph=True`",
            confidence=Confidence.MEDIUM,
        )


def hidden_state_not_detached(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes that retain the graph because a state is carried from step to step with it."""
    passes = [call for call in program.method("backward") if call.receiver is not None]
    for call in passes:
        training = _loop_of(call, program) if _retains(call) and len(passes) == 1 else None
        if training is None or training.loop is None or program.method("detach", "detach_") or _reads_data(program):
            continue
        states = carried(training.loop, program)
        if len(states) != 1:
            continue
        name, binding = states[0]
        yield Suspicion(
            call.node,
            f"`{name}` is carried from step to step with its graph, and every backward pass goes through all steps",
            "goes through the graphs of all earlier steps",
            f"detach the state before each step, as `{name} = {name}.detach()`, and remove `retain_graph=True`",
            ((binding.node, "carries the graph into the next step"),),
        )


def _reads_data(program: Program) -> bool:
    return any(key.endswith(".data") for scope in program.scopes for key in (*scope.loads, *scope.bindings))


def _retains(call: Call) -> bool:
    value = call.argument(1, "retain_graph")
    return isinstance(value, ast.Constant) and value.value is True


def _loop_of(call: Call, program: Program) -> Training | None:
    """Return the training loop with a backward pass in its own lines."""
    found = program.roles.direct(Act.BACKWARD)
    return next((training for training, one in found if one.node is call.node and not one.via), None)


def carried(loop: Loop, program: Program) -> list[tuple[str, Binding]]:
    """Return the names that carry a value from one pass of a loop to the next, with the assignment."""
    found = []
    scope = loop.scope
    for key, bindings in scope.bindings.items():
        inside = [
            one
            for one in bindings
            if one.context.loop is loop
            and one.how == "="
            and one.value is not None
            and one.context.guards == loop.guards
        ]
        if not inside or key.endswith("[]"):
            continue
        read = [order for order, _ in scope.loads.get(key, ()) if loop.first <= order <= inside[0].order]
        calls = [
            call
            for call in scope.calls
            if call.loop is loop
            and call.order < inside[0].order
            and any(dotted(one) == key for one in call.arguments())
        ]
        if read and calls and program.kinds.of(calls[0].node.func, calls[0].context, calls[0].order) is not None:
            found.append((key, inside[0]))
    return found


def graph_cut(program: Program) -> Iterator[Suspicion]:
    """Yield losses that are made to require a gradient by hand, and results of layers that `forward` detaches."""
    yield from _detached_layers(program)
    yield from _made_again(program)
    for key, _, bindings in program.attributes if "requires_grad" in program.text else ():
        if key.endswith(".requires_grad") and key.count(".") == 1:
            for one in bindings:
                if isinstance(one.value, ast.Constant) and one.value.value is True:
                    yield from _forced(
                        key.removesuffix(".requires_grad"), one.node, one.order, one.context.loop, program
                    )
    for call in program.method("requires_grad_"):
        value = call.argument(0, "requires_grad")
        off = isinstance(value, ast.Constant) and value.value is False
        if call.alone and call.key and "." not in call.key and not off:
            yield from _forced(call.key, call.node, call.order, call.loop, program)


def _forced(name: str, node: ast.AST, order: int, loop: object, program: Program) -> Iterator[Suspicion]:
    for call in program.method("backward"):
        if call.key != name or call.order < order or call.loop is not loop or loop is None:
            continue
        one = program.values.only(name, call.context, call.order)
        if (
            one is None
            or one.value is None
            or not isinstance(one.value, ast.Call | ast.BinOp)
            or one.context.loop is not loop
        ):
            continue
        yield Suspicion(
            node,
            f"`{name}` has no graph, and is made a leaf: its backward pass reaches no parameters",
            "hides that the graph is cut",
            f"remove this line and the operation before `{name}` that cuts the graph",
            ((call.node, "reaches no parameters"),),
        )
        return


def _made_again(program: Program) -> Iterator[Suspicion]:
    """Yield losses that are made again from their own number, as tensors that require a gradient."""
    for call in program.named("torch.tensor", "torch.autograd.Variable", "torch.FloatTensor"):
        value = call.argument(-1, "requires_grad")
        statement = call.statement
        if not isinstance(value, ast.Constant) or value.value is not True or not isinstance(statement, ast.Assign):
            continue
        name = dotted(statement.targets[0])
        if (
            statement.value is not call.node
            or not name
            or not call.node.args
            or name not in names_in(call.node.args[0])
        ):
            number = call.node.args[0] if call.node.args else None
            inner = (
                number.func.value if isinstance(number, ast.Call) and isinstance(number.func, ast.Attribute) else None
            )
            if inner is None or dotted(inner) != name or not name:
                continue
        if any(
            one.key == name and one.loop is call.loop and one.order > call.order for one in program.method("backward")
        ):
            yield Suspicion(
                call.node,
                f"`{name}` is made again as a new tensor: its backward pass reaches no parameters",
                "cuts the graph",
                "remove this line",
            )


def _detached_layers(program: Program) -> Iterator[Suspicion]:
    """Yield results of layers that `forward` detaches, in files that optimize the whole model and freeze nothing."""
    text = program.text
    if not program.method("detach") or any(
        word in text for word in ("requires_grad", "no_grad()\n    def", "pretrained", "freeze")
    ):
        return
    whole = any(
        isinstance(value := call.argument(0, "params"), ast.Call) and dotted(value.func).endswith(".parameters")
        for call in program.starting("torch.optim.")
    )
    if not whole or program.method("load_state_dict"):
        return
    for owner in program.models.classes():
        forward = owner.inner.get("forward")
        for call in [] if forward is None else forward.calls:
            inner = (
                program.call_at.get(call.receiver) if call.method == "detach" and call.receiver is not None else None
            )
            statement = call.statement
            if (
                inner is None
                or inner.key != "self"
                or not isinstance(statement, ast.Assign)
                or statement.value is not call.node
            ):
                continue
            layer = dotted(inner.node.func)
            uses = sum(len(scope.loads.get(layer, ())) for scope in program.inside(owner))
            named = sum(
                one.key == "self" and f"self.{one.method}" == layer
                for scope in program.inside(owner)
                for one in scope.calls
            )
            if uses == 0 and named == 1 and _with_parameters(layer, owner, program):
                yield Suspicion(
                    call.node,
                    f"the graph is cut behind `{layer}`: no loss reaches its parameters",
                    "detaches the result of the layer",
                    "remove `.detach()`",
                )


def _with_parameters(layer: str, owner: Scope, program: Program) -> bool:
    bindings = program.values.attribute(owner, layer.removeprefix("self."))
    return bool(bindings) and all(one.value is not None and is_layer(one.value, program) for one in bindings)
