"""Losses and their inputs, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import Act, Binding, Call, Program, Suspicion, Training, argument, dotted, names_in, part_of

_CROSS_ENTROPY = ("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss")
_BCE_LOGITS = ("torch.nn.functional.binary_cross_entropy_with_logits", "torch.nn.BCEWithLogitsLoss")
_NLL = ("torch.nn.functional.nll_loss", "torch.nn.NLLLoss")
_BCE = ("torch.nn.functional.binary_cross_entropy", "torch.nn.BCELoss")
_TEXTS = {
    "softmax": "a softmax",
    "log_softmax": "a log-softmax",
    "sigmoid": "a sigmoid",
    "relu": "a ReLU",
    "tanh": "a tanh",
}


def loss_calls(program: Program, *losses: str) -> Iterator[tuple[Call, ast.expr]]:
    """Yield calls of losses, as functions or as objects of their classes, with the expression of their input."""
    functions = [name for name in losses if name.startswith("torch.nn.functional.")]
    classes = [name for name in losses if not name.startswith("torch.nn.functional.")]
    for call in program.named(*functions):
        value = call.argument(0, "input")
        if value is not None:
            yield call, value
    made = {call.node for call in program.named(*classes)}
    if not made:
        return
    for call in program.calls:
        if call.name or len(call.node.args) < 1 or not isinstance(call.node.func, ast.Name | ast.Attribute | ast.Call):
            continue
        function = program.values.origin(call.node.func, call.context, call.order)[0]
        if function in made and call.node not in made and not isinstance(call.node.args[0], ast.Starred):
            yield call, call.node.args[0]


def softmax_before_cross_entropy(program: Program) -> Iterator[Suspicion]:
    """Yield cross entropies of the result of a softmax."""
    yield from _after(
        program, _CROSS_ENTROPY, ("softmax",),
        "cross entropy is computed of the result of a softmax, and applies a second one",
        "gets probabilities where it expects logits",
        "remove the softmax: the loss applies it",
    )  # fmt: skip


def sigmoid_before_bce_with_logits(program: Program) -> Iterator[Suspicion]:
    """Yield losses with logits of the result of a sigmoid."""
    yield from _after(
        program, _BCE_LOGITS, ("sigmoid",),
        "binary cross entropy with logits is computed of the result of a sigmoid, and applies a second one",
        "gets probabilities where it expects logits",
        "remove the sigmoid: the loss applies it",
    )  # fmt: skip


def logits_into_probability_loss(program: Program) -> Iterator[Suspicion]:
    """Yield losses for (log-)probabilities of values that are none."""
    yield from _after(
        program, _NLL, ("softmax", "linear", "relu", "sigmoid"),
        "the negative log-likelihood is computed of values that are not log-probabilities",
        "expects log-probabilities",
        "pass the logits through `log_softmax`, or use `cross_entropy` on the logits",
    )  # fmt: skip
    yield from _after(
        program, _BCE, ("log_softmax", "linear", "relu", "tanh", "log_sigmoid"),
        "binary cross entropy is computed of values that are not probabilities",
        "expects probabilities",
        "use `binary_cross_entropy_with_logits` on the logits",
    )  # fmt: skip


def activation_clamps_output(program: Program) -> Iterator[Suspicion]:
    """Yield losses for logits of the result of an activation with a limited range."""
    yield from _after(
        program, _CROSS_ENTROPY, ("relu", "sigmoid", "tanh"),
        "cross entropy is computed of the result of an activation, which limits the logits",
        "expects logits of any size",
        "remove the activation after the last layer",
    )  # fmt: skip
    yield from _after(
        program, _BCE_LOGITS, ("relu", "tanh"),
        "binary cross entropy with logits is computed of the result of an activation, which limits the logits",
        "expects logits of any size",
        "remove the activation after the last layer",
    )  # fmt: skip


def _after(
    program: Program, losses: tuple[str, ...], operations: tuple[str, ...], message: str, label: str, help: str
) -> Iterator[Suspicion]:
    for call, value in loss_calls(program, *losses):
        last = program.models.last(value, call.context, call.order)
        if last is None or last[0] not in operations or _reduction(call, program) == "none":
            continue
        if last[0] == "linear" and not _whole(call):
            continue
        related = () if last[1] is value else ((last[1], "the last operation of its input"),)
        yield Suspicion(call.node, message, label, help, related)


def _reduction(call: Call, program: Program) -> object:
    """Return the reduction of a loss, from the call or from the object that is called."""
    made = program.call_at.get(program.values.origin(call.node.func, call.context, call.order)[0]) or call
    value = made.argument(-1, "reduction")
    return "mean" if value is None else program.values.constant(value, made.context, made.order)


def _whole(call: Call) -> bool:
    """Return True if the loss is all of an assigned or returned value, or a backward pass begins from it."""
    value = getattr(call.statement, "value", None)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "backward":
        value = value.func.value
    return value is call.node


def loss_kept_with_graph(program: Program) -> Iterator[Suspicion]:
    """Yield losses that a training loop adds to a total or a list together with their graphs."""
    for loop in program.roles.trainings():
        for backward in loop.direct(Act.BACKWARD):
            name = backward.key
            if not name or "." in name or backward.context.scope is not loop.scope:
                continue
            scope = loop.scope
            for bindings in scope.bindings.values():
                for one in bindings:
                    if _adds(one, name) and one.context.loop is backward.context.loop and _kept(one, loop, program):
                        yield _with_graph(one.node, name, one.key, backward.node)
            for call in scope.calls:
                if call.method == "append" and call.loop is backward.context.loop and len(call.node.args) == 1:
                    value = call.node.args[0]
                    if isinstance(value, ast.Name) and value.id == name and _list_kept(call, loop, program):
                        yield _with_graph(call.node, name, call.key or "the list", backward.node)
                if call.loop is backward.context.loop and any(_is_name(one, name) for one in call.arguments()):
                    kept = _kept_by_method(call, name, program)
                    if kept is not None:
                        yield _with_graph(kept.node, name, kept.key, call.node)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _kept_by_method(call: Call, name: str, program: Program) -> Binding | None:
    """Return the line of a method of this file that adds its argument to a number of its object."""
    function = program.resolve(call)
    if function is None or function.owner is None or call.key in ("", "self"):
        return None
    names = [one for one in function.parameters if _is_name(argument(call, function, one) or call.node, name)]
    for key, bindings in function.bindings.items():
        for one in bindings:
            if not key.startswith("self.") or one.how != "augmented" or one.operator != "Add" or one.value is None:
                continue
            factors = [one.value.left, one.value.right] if isinstance(one.value, ast.BinOp) else [one.value]
            if any(_is_name(part, known) for part in factors for known in names):
                if all(len(function.bindings.get(known, ())) == 1 for known in names):
                    return one
    return None


def _adds(one: Binding, name: str) -> bool:
    """Return True if an assignment adds a loss to a total."""
    if one.key == name or "[" in one.key:
        return False
    if one.how == "augmented":
        return one.operator == "Add" and isinstance(one.value, ast.Name) and one.value.id == name
    value = one.value
    if one.how != "=" or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    parts = {part.id for part in (value.left, value.right) if isinstance(part, ast.Name)}
    return parts == {one.key, name}


def _kept(one: Binding, loop: Training, program: Program) -> bool:
    """Return True if a total begins at zero before the loop, and no backward pass begins from it."""
    starts = [
        each for each in program.values.bindings(one.key, loop.scope) if each.how == "=" and each.node is not one.node
    ]
    if not starts or not all(isinstance(part_of(each), ast.Constant) for each in starts):
        return False
    if any(loop.around(each.context) for each in starts):
        return False
    return not _differentiated(one.key, loop, program)


def _list_kept(call: Call, loop: Training, program: Program) -> bool:
    """Return True if a list is made before the loop, and only numbers are read from it."""
    key = call.key
    if not key and isinstance(call.receiver, ast.Subscript):
        key = dotted(call.receiver.value)
    starts = program.values.bindings(key, loop.scope) if key else []
    if not starts or any(each.context.scope is loop.scope and loop.around(each.context) for each in starts):
        return False
    made = [part_of(each) for each in starts if each.how == "="]
    if not made or not all(_empty(value) for value in made):
        return False
    if any(other.key == key and other.method in ("clear", "pop") for other in program.calls):
        return False
    return not _differentiated(key, loop, program)


def _empty(value: ast.expr | None) -> bool:
    """Return True for an empty list, and for a dict of empty lists."""
    if isinstance(value, ast.Dict):
        return all(_empty(one) for one in value.values)
    return isinstance(value, ast.List) and not value.elts


def _differentiated(key: str, loop: Training, program: Program) -> bool:
    """Return True if a backward pass may begin from a total or from a list of losses."""
    for call in program.method("backward", "manual_backward", "grad"):
        for part in (call.receiver, *call.arguments()):
            if part is None:
                continue
            found = program.values.origin(part, call.context, call.order)[0]
            if any(key in (name, name.partition(".")[0]) for node in (part, found) for name in names_in(node)):
                return True
    return False


def _with_graph(node: ast.AST, name: str, kept: str, backward: ast.AST) -> Suspicion:
    return Suspicion(
        node,
        f"`{kept}` keeps the graph of `{name}` from every step",
        f"`{name}` is kept with its graph",
        f"keep `{name}.item()` or `{name}.detach()`",
        ((backward, "the loss with the graph"),),
    )
