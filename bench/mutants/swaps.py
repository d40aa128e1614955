"""Operators that take one thing for another."""

from __future__ import annotations

import ast

from operators import Found, operator
from source import Source, name_of


@operator("eval-for-train")
def eval_for_train(source: Source) -> Found:
    """The model is set to eval mode where train mode was meant."""
    for call, value in source.methods("train"):
        if source.alone(call) is not None and not call.args and not call.keywords:
            yield call, source.replace(call, f"{source.code(value)}.eval()")


@operator("train-for-eval")
def train_for_eval(source: Source) -> Found:
    """The model is set to train mode where eval mode was meant."""
    for call, value in source.methods("eval"):
        if source.alone(call) is not None:
            yield call, source.replace(call, f"{source.code(value)}.train()")


def _of_other_optimizer(source: Source, method: str, role: str = "") -> Found:
    names = sorted(name for name, role in source.roles.items() if role == "optimizer")
    for call, value in source.methods(method, role=role):
        other = next((name for name in names if name != name_of(value)), None)
        if other and isinstance(value, ast.Name) and source.alone(call) is not None:
            yield call, source.replace(value, other)


@operator("step-of-other-optimizer")
def step_of_other_optimizer(source: Source) -> Found:
    """Another optimizer is stepped than the one that was meant."""
    return _of_other_optimizer(source, "step", role="optimizer")


@operator("zero-grad-of-other-optimizer")
def zero_grad_of_other_optimizer(source: Source) -> Found:
    """Another optimizer's gradients are cleared than those that were meant."""
    return _of_other_optimizer(source, "zero_grad")


@operator("validation-loader-in-training")
def validation_loader_in_training(source: Source) -> Found:
    """The model is trained on the data that it is evaluated with."""
    loaders = [name for name, role in source.roles.items() if role == "loader"]
    held_out = [name for name in loaders if any(word in name for word in ("val", "test", "eval", "dev"))]
    for node in source.nodes:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and held_out:
            inside = {name_of(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
            if node.iter.id in loaders and node.iter.id not in held_out and "backward" in inside:
                yield node.iter, source.replace(node.iter, held_out[0])


@operator("wrong-dimension")
def wrong_dimension(source: Source) -> Found:
    """A softmax or an argmax goes over the samples."""
    for call in source.calls:
        if name_of(call.func) not in ("softmax", "log_softmax", "Softmax", "LogSoftmax"):
            continue
        for keyword in call.keywords:
            if keyword.arg == "dim" and source.code(keyword.value) in ("1", "-1"):
                yield call, source.replace(keyword.value, "0")
        if len(call.args) >= 1 and source.code(call.args[-1]) in ("1", "-1"):
            yield call, source.replace(call.args[-1], "0")


@operator("arguments-of-loss-swapped")
def arguments_of_loss_swapped(source: Source) -> Found:
    """Outputs and targets of a loss are exchanged."""
    for call in source.calls:
        name = name_of(call.func)
        if len(call.args) >= 2 and (
            name in ("criterion", "loss_fn", "loss_function") or name.endswith(("kl_div", "cross_entropy"))
        ):
            first, second = call.args[:2]
            yield call, [*source.replace(first, source.code(second)), *source.replace(second, source.code(first))]


def _applied_before(source: Source, activation: str, loss: str, module: str) -> Found:
    """Yield an activation of the outputs at each call of a loss, as a function or as a module."""
    modules = {
        name_of(node.targets[0])
        for node in source.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name_of(node.value) == module
    }
    for call in source.calls:
        if len(call.args) >= 2 and name_of(call.func) in {*modules, loss}:
            yield call, source.replace(call.args[0], f"({source.code(call.args[0])}){activation}")


@operator("softmax-before-cross-entropy")
def softmax_before_cross_entropy(source: Source) -> Found:
    """A softmax is applied before a loss that applies one."""
    return _applied_before(source, ".softmax(1)", "cross_entropy", "CrossEntropyLoss")


@operator("sigmoid-before-logits")
def sigmoid_before_logits(source: Source) -> Found:
    """A sigmoid is applied before a loss that applies one."""
    return _applied_before(source, ".sigmoid()", "binary_cross_entropy_with_logits", "BCEWithLogitsLoss")


@operator("target-broadcast")
def target_broadcast(source: Source) -> Found:
    """Outputs of shape (n, 1) meet targets of shape (n,)."""
    squeezed = ("squeeze", "unsqueeze", "flatten", "view", "reshape")
    for call in source.calls:
        name = name_of(call.func)
        if len(call.args) < 2 or not (name in ("criterion", "loss_fn") or name.endswith(("mse_loss", "l1_loss"))):
            continue
        for argument in call.args[:2]:
            made = argument.func if isinstance(argument, ast.Call) else None
            if isinstance(made, ast.Attribute) and made.attr in squeezed:
                yield call, source.replace(argument, source.code(made.value))
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            for back in ast.walk(node):
                value = back.value if isinstance(back, ast.Return) else None
                made = value.func if isinstance(value, ast.Call) else None
                if isinstance(made, ast.Attribute) and made.attr in ("squeeze", "flatten") and value is not None:
                    yield value, source.replace(value, source.code(made.value))


@operator("window-off-by-one")
def window_off_by_one(source: Source) -> Found:
    """The first window of an accumulation holds one batch."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.BinOp):
            if isinstance(node.left.op, ast.Add) and source.code(node.left.right) == "1" and _steps_below(source, node):
                yield node, source.replace(node.left, source.code(node.left.left))


def _steps_below(source: Source, node: ast.AST) -> bool:
    branch = source.up(node, ast.If)
    return branch is not None and any(
        name_of(call.func) == "step"
        and isinstance(call.func, ast.Attribute)
        and source.role(call.func.value) in ("optimizer", "scaler")
        for call in ast.walk(branch)
        if isinstance(call, ast.Call)
    )


@operator("state-dict-for-load")
def state_dict_for_load(source: Source) -> Found:
    """A state is read where it was to be loaded."""
    for call, value in source.methods("load_state_dict"):
        if source.alone(call) is not None:
            yield call, source.replace(call, f"{source.code(value)}.state_dict()")


@operator("average-rebound")
def average_rebound(source: Source) -> Found:
    """The local name of a weight is bound to the average; the weight is not written."""
    for call, value in source.methods("copy_", "lerp_", "mul_"):
        statement = source.alone(call)
        if statement is not None and isinstance(value, ast.Name) and call.args and source.up(call, ast.For):
            text = (
                f"{value.id} = {value.id}.{call.func.attr[:-1]}({source.code(call)[source.code(call).index('(') + 1 :]}"  # type: ignore[attr-defined]
            )
            if call.func.attr == "copy_":  # type: ignore[attr-defined]
                text = f"{value.id} = {source.code(call.args[0])}"
            yield call, source.replace(statement, text)


@operator("equal-inputs-and-targets")
def equal_inputs_and_targets(source: Source) -> Found:
    """The target of a sequence is its input: nothing is to be predicted."""
    for node in source.nodes:
        if isinstance(node, ast.Subscript):
            code = source.code(node)
            if code.replace(" ", "").endswith("[:,1:]") and not _is_column(source, node):
                yield node, source.replace(node, f"{source.code(node.value)}[:, :-1]")


def _is_column(source: Source, node: ast.Subscript) -> bool:
    """Return True for the other columns in a formula that has the first one: of two columns, `[:, :-1]` is the first.

    The formula is then another one of the same data, as right as the one before, and no target is an input.
    """
    first = f"{source.code(node.value)}[:,:1]"
    around: ast.AST = node
    while isinstance(around := source.parents[around], ast.expr):
        if isinstance(around, ast.BinOp) and first in source.code(around).replace(" ", ""):
            return True
    return False
