"""Operators that leave something out."""

from __future__ import annotations

import ast
from functools import partial

from operators import Found, operator, register
from source import Source, name_of

_CALLS = {
    "drop-zero-grad": ("Gradients are not cleared.", ("zero_grad",), ""),
    "drop-optimizer-step": ("The optimizer is not stepped.", ("step",), "optimizer"),
    "drop-backward": ("A loss is computed and not differentiated.", ("backward",), ""),
    "drop-eval": ("The model is evaluated in train mode.", ("eval",), ""),
    "drop-train": ("The model goes on training in eval mode.", ("train",), ""),
    "drop-scheduler-step": ("A schedule is built and not stepped.", ("step",), "scheduler"),
    "drop-unscale": ("Gradients are clipped, or read, while they carry the scale.", ("unscale_",), ""),
    "drop-scaler-update": ("The scale is not updated after the step.", ("update",), "scaler"),
    "drop-load-state": ("A state that was saved or copied is not loaded.", ("load_state_dict",), ""),
    "drop-copy-into-average": (
        "An average or a target network is not updated.",
        ("lerp_", "copy_", "update_parameters"),
        "",
    ),
}
"""Operator to its mistake, the methods with statements that it deletes, and the role of their objects."""


def _dropped(source: Source, names: tuple[str, ...], role: str) -> Found:
    for call, _ in source.methods(*names, role=role):
        statement = source.alone(call)
        if statement is not None:
            yield call, source.delete(statement)


for _name, (_mistake, _methods, _role) in _CALLS.items():
    register(_name, _mistake, partial(_dropped, names=_methods, role=_role))


@operator("drop-no-grad", silent=True)
def drop_no_grad(source: Source) -> Found:
    """An evaluation builds graphs that nothing uses."""
    for node in source.nodes:
        if isinstance(node, ast.With) and len(node.items) == 1:
            made = node.items[0].context_expr
            # Updates of parameters by hand raise without it, and values drawn inside may be meant as targets.
            inside = {name_of(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
            written = any(name.endswith("_") and not name.startswith("_") for name in inside)
            if name_of(made) in ("no_grad", "inference_mode") and not written and "reset_parameters" not in inside:
                yield made, source.replace(made, "__import__('contextlib').nullcontext()")
        elif isinstance(node, ast.FunctionDef):
            # The initialisation of a layer turns gradients off itself: no graph is recorded without the decorator.
            if any(name_of(call.func) == "reset_parameters" for call in ast.walk(node) if isinstance(call, ast.Call)):
                continue
            for decorator in node.decorator_list:
                if name_of(decorator) in ("no_grad", "inference_mode"):
                    yield decorator, source.replace(decorator, "(lambda function: function)")


@operator("drop-detach")
def drop_detach(source: Source) -> Found:
    """A gradient flows where it was stopped."""
    for call, value in source.methods("detach"):
        if not isinstance(source.parents[call], ast.Attribute):
            yield call, source.replace(call, source.code(value))


@operator("drop-item", silent=True)
def drop_item(source: Source) -> Found:
    """A running sum of losses keeps the graphs of all steps."""
    for call, value in source.methods("item"):
        statement = source.statement(call)
        inside_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
        appended = isinstance(source.parents[call], ast.Call) and name_of(source.parents[call]) == "append"  # type: ignore[arg-type]
        if (inside_sum or appended) and "loss" in source.code(value) and _has_graph(source, call, value):
            yield call, source.replace(call, source.code(value))


def _has_graph(source: Source, call: ast.Call, value: ast.expr) -> bool:
    """Return False for a value that was detached, or is computed without gradients."""
    if isinstance(value, ast.Attribute) and value.attr == "data":
        return False
    around: ast.AST = call
    while around in source.parents:
        around = source.parents[around]
        made = [item.context_expr for item in around.items] if isinstance(around, ast.With) else []
        made += around.decorator_list if isinstance(around, ast.FunctionDef) else []
        if any(name_of(one) in ("no_grad", "inference_mode") for one in made):
            return False
    return True


@operator("drop-clone-of-state")
def drop_clone_of_state(source: Source) -> Found:
    """Best weights are kept by reference."""
    for call in source.calls:
        if name_of(call.func) == "deepcopy" and call.args:
            if "state_dict" in source.code(call.args[0]):
                yield call, source.replace(call, source.code(call.args[0]))
    for call, value in source.methods("clone"):
        comprehension = source.parents.get(call)
        if isinstance(comprehension, ast.DictComp):
            yield call, source.replace(call, source.code(value))


@operator("drop-division-of-window")
def drop_division_of_window(source: Source) -> Found:
    """Losses of an accumulation window are not divided by its length."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and "loss" in source.code(node.left):
            by = source.code(node.right).lower()
            if any(word in by for word in ("accum", "micro", "window")):
                yield node, source.replace(node, f"({source.code(node.left)})")
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and source.whole(node):
            differentiated = {source.code(value) for _, value in source.methods("backward")}
            if "loss" in source.code(node.target) and source.code(node.target) in differentiated:
                yield node, source.delete(node)


@operator("drop-freeze")
def drop_freeze(source: Source) -> Found:
    """Parameters that were meant to be frozen train."""
    for call, _ in source.methods("requires_grad_"):
        frozen = call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False
        statement = source.alone(call)
        if frozen and statement is not None:
            yield call, source.delete(statement)


@operator("drop-training-flag")
def drop_training_flag(source: Source) -> Found:
    """Functional dropout is applied in evaluation too."""
    for call in source.calls:
        for keyword in call.keywords:
            if keyword.arg == "training" and name_of(call.func).startswith("dropout"):
                yield call, source.replace(keyword.value, "True")


@operator("drop-module-list")
def drop_module_list(source: Source) -> Found:
    """Layers stand in a plain list or dict: they are not registered."""
    for call in source.calls:
        if name_of(call.func) in ("ModuleList", "ModuleDict") and len(call.args) == 1:
            kind = "list" if name_of(call.func) == "ModuleList" else "dict"
            yield call, source.replace(call, f"{kind}({source.code(call.args[0])})")


@operator("drop-parameter")
def drop_parameter(source: Source) -> Found:
    """A trainable tensor is not registered as a parameter."""
    for call in source.calls:
        target = source.statement(call)
        attribute = isinstance(target, ast.Assign) and isinstance(target.targets[0], ast.Attribute)
        if name_of(call.func) == "Parameter" and len(call.args) == 1 and not call.keywords and attribute:
            yield call, source.replace(call, f"({source.code(call.args[0])})")


@operator("drop-buffer")
def drop_buffer(source: Source) -> Found:
    """A state of the model is a plain attribute: it is not saved and not moved."""
    for call, value in source.methods("register_buffer"):
        statement = source.alone(call)
        if statement is not None and len(call.args) >= 2 and isinstance(call.args[0], ast.Constant):
            text = f"{source.code(value)}.{call.args[0].value} = {source.code(call.args[1])}"
            yield call, source.replace(statement, text)


@operator("drop-brackets")
def drop_brackets(source: Source) -> Found:
    """A method is named and not called."""
    for call, _ in source.methods("zero_grad", "eval", "train", "step", "backward"):
        if source.alone(call) is not None and not call.args and not call.keywords:
            yield call, source.replace(call, source.code(call.func))
