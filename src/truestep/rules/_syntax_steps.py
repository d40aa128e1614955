"""Steps, losses and metrics of a training loop, from the syntax."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax_named import named_only
from truestep.syntax import (
    Act,
    Binding,
    Call,
    Context,
    Kind,
    Loop,
    Program,
    Suspicion,
    Training,
    dotted,
    names_in,
    part_of,
)

_TENSOR_ONLY = {
    "masked_fill", "masked_scatter", "index_fill", "index_add", "scatter_add", "unsqueeze", "clamp", "clamp_min",
    "clamp_max", "log_softmax", "softmax", "index_copy", "permute",
}  # fmt: skip
"""Methods of tensors that change nothing, with names that other objects hardly have."""
_LOWER, _HIGHER = (
    re.compile(r"(?:^|_)(?:loss|error|err|mse|mae|rmse|ppl|perplexity)(?:_|$)"),
    re.compile(r"(?:^|_)(?:acc|accuracy|f1|auc|dice|iou|miou|bleu|r2)(?:_|$)"),
)


def step_without_backward(program: Program) -> Iterator[Suspicion]:
    """Yield steps of training loops in files without any backward pass, and `backward` that is named only."""
    named = list(named_only(program, "no gradient is computed", "backward"))
    yield from named
    if named:
        return
    yield from _repeated_steps(program)
    yield from _second_steps(program)
    if program.mentions("backward") or any("backward" in name for name in program.methods_called()):
        return
    if program.method("grad") or any(
        ".grad" in key for scope in program.scopes for key in (*scope.loads, *scope.bindings)
    ):
        return
    for loop in program.roles.trainings():
        for step in loop.steps:
            losses = loop.of(Act.FORWARD)
            if not step.sure or not losses or loop.left_to_others(step) or step.built is None:
                continue
            if not step.built.name.startswith("torch.optim."):
                continue
            yield Suspicion(
                step.node,
                "the optimizer steps without any backward pass",
                "has no gradients to use",
                f"call `loss.backward()` before `{ast.unparse(step.node)}`",
                ((losses[-1].node, "the forward pass"),),
            )
            return


def _repeated_steps(program: Program) -> Iterator[Suspicion]:
    """Yield steps that a loop inside the training loop repeats on the same gradients."""
    for loop in program.roles.trainings():
        node = None if loop.loop is None else loop.loop.node
        if loop.loop is None or loop.loop.parent is None or not isinstance(node, ast.For):
            continue
        times = node.iter
        if not isinstance(times, ast.Call) or dotted(times.func) != "range" or len(times.args) != 1:
            continue
        if loop.of(Act.BACKWARD, Act.UNKNOWN) or program.values.constant(
            times.args[0], _at(loop.loop), loop.loop.first
        ) in (0, 1):
            continue
        around = [one for one in program.flow.of_loop(loop.loop.parent) if one.act is Act.BACKWARD]
        for step in loop.steps:
            if around and step.sure and not step.guarded and not loop.reads_gradients():
                yield Suspicion(
                    step.node,
                    "the optimizer steps several times on the gradients of one backward pass",
                    "uses gradients that a step has already used",
                    "run a forward and a backward pass before each step",
                    ((around[0].node, "the only backward pass"),),
                )


def _second_steps(program: Program) -> Iterator[Suspicion]:
    """Yield steps right behind a step of the same optimizer."""
    for loop in program.roles.steps():
        for first, then in itertools.pairwise(loop.direct(Act.STEP)):
            if first.key != then.key or not first.key or first.guards != then.guards or first.scaled or then.via:
                continue
            if any(one.call is None or one.call.node.args for one in (first, then)) or not loop.of(Act.BACKWARD):
                continue
            between = loop.operations[loop.operations.index(first) + 1 : loop.operations.index(then)]
            sure = any(step.operation is then and step.sure for step in loop.steps)
            if (
                sure
                and not loop.reads_gradients()
                and not any(one.act in (Act.BACKWARD, Act.UNKNOWN) for one in between)
            ):
                yield Suspicion(
                    then.node,
                    "the optimizer steps twice on the gradients of one backward pass",
                    "uses gradients that a step has already used",
                    "remove one of the two steps",
                    ((first.node, "the first step"),),
                )


def backward_passes_discarded(program: Program) -> Iterator[Suspicion]:
    """Yield clears in the loop over batches of gradients that are used behind this loop only."""
    if not program.method("zero_grad") or not program.roles.trainings():
        return
    for outer in program.loops:
        operations = program.flow.of_loop(outer)
        steps = [one for one in operations if one.act is Act.STEP and one.loops[-1] is outer and not one.via]
        if len(steps) != 1 or any(one.act is Act.UNKNOWN for one in operations):
            continue
        inner = [one for one in operations if one.loops[-2:-1] == (outer,) and one.act in (Act.CLEAR, Act.BACKWARD)]
        clears = [one for one in inner if one.act is Act.CLEAR and one.key == steps[0].key and not one.via]
        passes = [one for one in inner if one.act is Act.BACKWARD]
        if len(clears) != 1 or len(passes) != 1 or clears[0].loops[-1] is not passes[0].loops[-1]:
            continue
        loop = clears[0].loops[-1]
        if clears[0].guards != loop.guards or passes[0].guards != loop.guards or steps[0].order < loop.last:
            continue
        if isinstance(loop.node, ast.While) or any(isinstance(node, ast.Break) for node in ast.walk(loop.node)):
            continue
        if any(one.act is Act.BACKWARD and one not in passes for one in operations) or program.mentions(".grad"):
            continue
        yield Suspicion(
            clears[0].node,
            "the gradients of all batches but the last are cleared before the step",
            "clears them in every pass of the loop",
            f"move `{ast.unparse(steps[0].node)}` into the loop over the batches",
            ((steps[0].node, "steps once, behind the loop"), (passes[0].node, "computes the gradients")),
        )


def _at(loop: Loop) -> Context:
    return Context(loop.scope, loop.parent, loop.guards)


def backward_without_step(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes for an optimizer of the file that is never stepped, and `step` that is named only."""
    yield from named_only(program, "the optimizer never steps", "step", Kind.OPTIMIZER)
    for call in program.calls:
        statement = call.statement
        if not call.name.startswith("torch.optim.") or not re.match(r"^torch\.optim\.[A-Z]\w*$", call.name):
            continue
        if not isinstance(statement, ast.Assign) or statement.value is not call.node or len(statement.targets) != 1:
            continue
        key = dotted(statement.targets[0])
        clears = _only_cleared(key, program)
        if not clears or program.mentions(".grad") or program.method("grad"):
            continue
        passes = [one for one in program.method("backward") if one.receiver is not None and one.loop is clears[0].loop]
        if passes:
            yield Suspicion(
                passes[0].node,
                f"`{key}` is never stepped: its gradients are computed, cleared and never used",
                "computes gradients that nothing uses",
                f"call `{key}.step()` after the backward pass",
                ((call.node, "is built, and never stepped"), (clears[0].node, "clears its gradients")),
            )


def _only_cleared(key: str, program: Program) -> list[Call]:
    """Return the calls that clear the gradients of an optimizer, if the file does nothing else with it."""
    name = key.rpartition(".")[2]
    clears = [
        call for call in program.method("zero_grad") if call.key.rpartition(".")[2] == name and call.loop is not None
    ]
    receivers = {call.receiver for call in clears}
    for scope in program.scopes:
        for text, uses in scope.loads.items():
            if name in text.split(".") and any(node not in receivers for _, node in uses):
                return []
    return clears if name else []


def accumulation_not_normalised(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes of several batches for one step, if no loss is divided by their number."""
    for loop in program.roles.trainings():
        steps = loop.direct(Act.STEP)
        if loop.loop is None or len(steps) != 1 or len(loop.steps) != 1 or not program.roles.over_batches(loop.loop):
            continue
        step = loop.steps[0]
        window = _window(step.operation.guards[len(loop.loop.guards) :])
        passes = loop.direct(Act.BACKWARD)
        if window is None or len(passes) != 1 or passes[0].guards != loop.loop.guards or passes[0].via:
            continue
        clears = loop.direct(Act.CLEAR)
        if not clears or any(one.guards == loop.loop.guards for one in clears) or loop.reads_gradients():
            continue
        backward = passes[0].call
        adaptive = step.built is None or step.built.name != "torch.optim.SGD"
        if (
            backward is None
            or backward.receiver is None
            or backward.node.args
            or backward.node.keywords
            or _divided(backward, program)
            or (adaptive and not loop.of(Act.CLIP))
        ):
            continue
        yield Suspicion(
            backward.node,
            "the gradients of several batches are added for one step, and the loss is not divided by their number",
            "adds the gradient of a whole batch",
            f"divide the loss: `(loss / {window}).backward()`",
            ((step.node, f"steps once in `{window}` batches"),),
            Confidence.HIGH if step.sure else Confidence.MEDIUM,
        )


def _window(guards: tuple[tuple[ast.AST, int], ...]) -> str | None:
    """Return the text of the number of batches behind which a step comes."""
    if len(guards) != 1 or guards[0][1] != 0 or not isinstance(guards[0][0], ast.If):
        return None
    for node in ast.walk(guards[0][0].test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return ast.unparse(node.right)
    return None


def _divided(backward: Call, program: Program) -> bool:
    """Return True if anything about a loss is divided or multiplied, or is not in this function."""
    waiting: list[ast.AST] = [backward.node]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
                return True
            call = program.call_at.get(node)
            if call is not None and program.resolve(call) is not None:
                return True
            if isinstance(node, ast.keyword) and node.arg == "reduction":
                return True
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                for one in program.values.bindings(node.id, backward.scope):
                    if one.how == "augmented" and one.operator in ("Div", "Mult"):
                        return True
                    if one.how != "=" or one.value is None:
                        continue
                    made = isinstance(one.value, ast.Call) and "Loss" in ast.unparse(one.value.func)
                    if made or one.context.loop is backward.loop:
                        waiting.append(one.value)
    return False


def scaler_misused(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes without the scale before a step of the scaler, and steps around the scaler."""
    for loop in program.roles.trainings():
        steps, passes = loop.direct(Act.STEP), loop.direct(Act.BACKWARD)
        scaled = [one for one in passes if one.scaled]
        if len(steps) != 1 or not passes or loop.of(Act.UNKNOWN) or loop.reads_gradients():
            continue
        step = steps[0]
        plain = [one for one in passes if not one.scaled and one.guards == step.guards]
        if step.scaled and plain and not _by_hand(loop):
            yield Suspicion(
                plain[0].node,
                "the loss is not scaled, and the scaler divides its gradients by the scale",
                "adds gradients without the scale",
                f"scale the loss: `{_scaler(step.call)}.scale({plain[0].key or 'loss'}).backward()`",
                ((step.node, "divides the gradients by the scale"),),
            )
        elif not step.scaled and scaled and len(scaled) == len(passes) and not loop.of(Act.UNSCALE):
            yield Suspicion(
                step.node,
                "the optimizer steps on gradients that carry the scale",
                "does not divide by the scale",
                f"call `scaler.step({step.key or 'optimizer'})`",
                ((scaled[0].node, "scales the gradients"),),
                Confidence.MEDIUM,
            )


def _by_hand(loop: Training) -> bool:
    return any("get_scale" in key or ".scale" in key for one in loop.operations for key in one.context.scope.loads)


def _scaler(call: Call | None) -> str:
    return "scaler" if call is None or not call.key else call.key


def worst_weights_kept(program: Program) -> Iterator[Suspicion]:
    """Yield conditions that keep the weights of a larger loss or a smaller accuracy."""
    branches = {guard.node: None for call in program.method("state_dict") for guard in call.context.guards}
    for node in branches:
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
            continue
        sides = (dotted(node.test.left), dotted(node.test.comparators[0]))
        if not all(sides) or not isinstance(node.test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            continue
        greater = isinstance(node.test.ops[0], ast.Gt | ast.GtE)
        for place, best in enumerate(sides):
            new = sides[1 - place]
            if not _replaces(node, best, new) or "state_dict" not in "".join(map(ast.unparse, node.body)):
                continue
            larger = greater if place == 1 else not greater
            lower, higher = _LOWER.search(new.lower()), _HIGHER.search(new.lower())
            if bool(lower) != bool(higher) and (larger if lower else not larger):
                yield Suspicion(
                    node.test,
                    f"the weights with the {'largest loss' if lower else 'smallest metric'} are kept as the best ones",
                    f"is true for a worse `{new}`",
                    "turn the comparison round",
                )


def _replaces(node: ast.If, best: str, new: str) -> bool:
    """Return True if a branch assigns the new value to the best one."""
    return "best" in best.lower() and any(
        isinstance(one, ast.Assign) and dotted(one.targets[0]) == best and dotted(one.value) == new for one in node.body
    )


def result_never_read(program: Program) -> Iterator[Suspicion]:
    """Yield statements that are only an operation on a tensor, which changes nothing."""
    for call in program.method(*_TENSOR_ONLY, "to", "cuda"):
        if (
            not call.alone
            or call.receiver is None
            or call.name
            or any(one.method in ("raises", "assertRaises") for one in call.context.withs)
        ):
            continue
        if any(word.arg in ("out", "inplace") for word in call.node.keywords):
            continue
        if call.method in ("to", "cuda") and not _of_loader(call, program):
            continue
        guess = program.kinds.receiver(call)
        if guess is not None and guess.kind is not Kind.OTHER:
            continue
        yield Suspicion(
            call.node,
            f"the result of `{call.method}` is dropped: the operation returns a new tensor",
            "changes nothing",
            f"assign the result: `{call.key or 'x'} = {ast.unparse(call.node)}`",
        )


def _of_loader(call: Call, program: Program) -> bool:
    """Return True if the object of a method is a part of a batch of a loader: a whole batch may move in place."""
    bindings = call.scope.bindings.get(call.key, [])
    return bool(bindings) and all(
        one.how == "for"
        and one.context.loop is not None
        and len(one.index) > _pairs(one.context.loop)
        and program.roles.over_loader(one.context.loop) is not None
        for one in bindings
    )


def _pairs(loop: Loop) -> int:
    """Return the number of tuples that a loop makes around its batches, with `enumerate` and `zip`."""
    assert not isinstance(loop.node, ast.While)
    return sum(isinstance(one, ast.Name) and one.id in ("enumerate", "zip") for one in ast.walk(loop.node.iter))


def loss_differentiated_twice(program: Program) -> Iterator[Suspicion]:
    """Yield second backward passes of one loss, with nothing between that clears the gradients of the first."""
    passes = [call for call in program.method("backward") if call.alone and call.key and call.context.loop is not None]
    for first, then in itertools.pairwise(passes):
        if first.key != then.key or first.scope is not then.scope or first.loop is not then.loop:
            continue
        if first.context.guards != then.context.guards or first.node.args or then.node.args:
            continue
        one, other = (program.values.only(call.key, call.context, call.order) for call in (first, then))
        if (
            one is None
            or one is not other
            or any(word.arg in ("inputs", "gradient") for call in (first, then) for word in call.node.keywords)
        ):
            continue
        between = [call for call in first.scope.calls if first.order < call.order < then.order]
        if any("zero_grad" in call.method or call.method in ("step", "grad", "zero_") for call in between):
            continue
        yield Suspicion(
            then.node,
            f"`{then.key}` is differentiated twice for one step, and its gradient counts twice",
            "adds the same gradient again",
            "remove one of the two backward passes",
            ((first.node, "the first backward pass"),),
        )


def sum_overwritten(program: Program) -> Iterator[Suspicion]:
    """Yield losses of the parts of a sequence that overwrite their sum, and sums that are never set to zero again."""
    if not program.method("backward"):
        return
    for loop in program.loops:
        for key, bindings in loop.scope.bindings.items():
            inside = [one for one in bindings if one.context.loop is loop]
            starts = [
                one for one in bindings if one.context.loop is loop.parent and one.order < loop.first and _zero(one)
            ]
            if (
                len(inside) != 1
                or not starts
                or inside[0].how != "="
                or inside[0].index
                or inside[0].context.guards != loop.guards
            ):
                continue
            value = inside[0].value
            if not isinstance(value, ast.Call) or key in names_in(value) or len(bindings) != len(starts) + 1:
                continue
            if any(loop.first <= order <= loop.last for order, _ in loop.scope.loads.get(key, ())):
                continue
            behind = [
                call
                for call in program.method("backward")
                if call.key == key and call.scope is loop.scope and call.order > loop.last and call.loop is loop.parent
            ]
            if behind:
                yield Suspicion(
                    inside[0].node,
                    f"`{key}` is overwritten in every pass of the loop, and is not the sum of them",
                    "keeps the last value only",
                    f"add the values: `{key} = {key} + ...`",
                    (
                        (behind[0].node, "differentiates the last value"),
                        (starts[-1].node, "set to zero before the loop"),
                    ),
                )


def _zero(one: Binding) -> bool:
    value = part_of(one)
    return isinstance(value, ast.Constant) and value.value in (0, 0.0) and value.value is not False


def metric_misreported(program: Program) -> Iterator[Suspicion]:
    """Yield quotients of counts that go on from epoch to epoch."""
    for outer in program.loops:
        for key, bindings in outer.scope.bindings.items():
            added = [one for one in bindings if one.how == "augmented" and one.operator == "Add" and _inner(one, outer)]
            starts = [one for one in bindings if one.how == "="]
            if not added or len(added) + len(starts) != len(bindings) or not starts or not all(map(_zero, starts)):
                continue
            if any(one.context.loop is not None and one.context.loop.within(outer) for one in starts):
                continue
            loop = added[0].context.loop
            assert loop is not None
            acts = {one.act for one in program.flow.of_loop(loop)}
            if Act.FORWARD not in acts or Act.BACKWARD in acts or outer.parent is not None:
                continue
            for other in outer.scope.bindings.values():
                for one in other:
                    if one.context.loop is outer and one.order > loop.last and _quotient(one.value, key):
                        yield Suspicion(
                            one.node,
                            f"`{key}` counts on from epoch to epoch, and the metric is that of all epochs together",
                            "divides the counts of all epochs so far",
                            f"set `{key}` to zero at the start of each evaluation",
                            ((starts[0].node, "set to zero once"), (added[0].node, "counts on")),
                        )


def _inner(one: Binding, outer: Loop) -> bool:
    return one.context.loop is not None and one.context.loop.parent is outer


def _quotient(value: ast.expr | None, key: str) -> bool:
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        value = value.left if isinstance(value.left, ast.BinOp) else value.right
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and dotted(value.left) == key


def training_on_evaluation_data(program: Program) -> Iterator[Suspicion]:
    """Yield training loops over a loader for the evaluation, in files with a training loader that is never read."""
    built: dict[str, Call] = {}
    for call in program.named("torch.utils.data.DataLoader"):
        statement = call.statement
        if isinstance(statement, ast.Assign) and statement.value is call.node and (key := dotted(statement.targets[0])):
            built[key] = call
    train = [key for key in built if "train" in key and not any(key in scope.loads for scope in program.scopes)]
    if len(train) != 1:
        return
    for training in program.roles.trainings():
        loop = training.loop
        node = None if loop is None else program.roles.over_loader(loop)
        if not isinstance(node, ast.expr) or not training.of(Act.BACKWARD):
            continue
        key = dotted(node)
        if key in built and re.search(r"(?:^|_)(?:val|valid|validation|test|eval)(?:_|$)", key):
            yield Suspicion(
                node,
                f"the training reads `{key}`, and `{train[0]}` is never read",
                "the data of the evaluation",
                f"train on `{train[0]}`",
                ((built[train[0]].node, "is never read"),),
            )
