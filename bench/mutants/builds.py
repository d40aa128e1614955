"""Operators that build a part of the program wrongly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from operators import Found, operator
from source import Source, name_of


def _parameters(source: Source) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield the calls that build an optimizer of `model.parameters()`, each with this argument."""
    for made in source.built("optimizer"):
        call = made.value
        assert isinstance(call, ast.Call)
        if call.args and isinstance(call.args[0], ast.Call) and name_of(call.args[0]) == "parameters":
            yield call, call.args[0]


def _sliced(source: Source, part: str) -> Found:
    for call, parameters in _parameters(source):
        yield call, source.replace(parameters, f"list({source.code(parameters)})[{part}]")


@operator("optimizer-forgets-last")
def optimizer_forgets_last(source: Source) -> Found:
    """The optimizer lacks the last two parameters of the model."""
    return _sliced(source, ":-2")


@operator("optimizer-forgets-first")
def optimizer_forgets_first(source: Source) -> Found:
    """The optimizer lacks the first two parameters of the model."""
    return _sliced(source, "2:")


@operator("optimizer-of-a-copy")
def optimizer_of_a_copy(source: Source) -> Found:
    """The optimizer holds the parameters of a copy of the model."""
    for call, parameters in _parameters(source):
        if isinstance(parameters.func, ast.Attribute):
            model = source.code(parameters.func.value)
            yield call, source.replace(parameters, f"__import__('copy').deepcopy({model}).parameters()")


def _learning_rate(source: Source, change: str) -> Found:
    for made in source.built("optimizer"):
        assert isinstance(made.value, ast.Call)
        for keyword in made.value.keywords:
            if keyword.arg == "lr":
                yield made.value, source.replace(keyword.value, f"({source.code(keyword.value)}) {change}")


@operator("learning-rate-zero")
def learning_rate_zero(source: Source) -> Found:
    """The learning rate rounds to nothing."""
    return _learning_rate(source, "// 1")


@operator("learning-rate-huge")
def learning_rate_huge(source: Source) -> Found:
    """The learning rate is a thousand times too large."""
    return _learning_rate(source, "* 1000")


@operator("graph-cut-in-forward")
def graph_cut_in_forward(source: Source) -> Found:
    """A hidden value is detached: the layers before it get no gradient."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "forward" and len(node.args.args) > 1:
            for statement in node.body[1:-1] if len(node.body) > 2 else node.body[:1]:
                value = statement.value if isinstance(statement, ast.Assign) else None
                if (
                    isinstance(value, ast.Call)
                    and len(statement.targets) == 1
                    and isinstance(statement.targets[0], ast.Name)
                ):  # type: ignore[attr-defined]
                    yield statement, source.replace(value, f"({source.code(value)}).detach()")
                    break


@operator("first-layer-without-gradient")
def first_layer_without_gradient(source: Source) -> Found:
    """The first part of forward runs under no_grad."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "forward" and len(node.body) > 1:
            first = node.body[0]
            if isinstance(first, ast.Assign) and isinstance(first.value, ast.Call) and source.whole(first):
                yield first, source.replace(first, f"with __import__('torch').no_grad(): {source.code(first)}")


@operator("loss-rebuilt")
def loss_rebuilt(source: Source) -> Found:
    """The loss is built again from its value: nothing gets a gradient."""
    for call, value in source.methods("backward"):
        statement = source.alone(call)
        if statement is not None and isinstance(value, ast.Name) and not call.args:
            text = f"{value.id} = __import__('torch').tensor({value.id}.item(), requires_grad=True)"
            yield call, source.insert_before(statement, text)


@operator("term-detached")
def term_detached(source: Source) -> Found:
    """A term of a sum of losses is detached."""
    for node in source.nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Add)
            and isinstance(node.right, ast.Name | ast.BinOp)
        ):
            target = source.statement(node)
            named = isinstance(target, ast.Assign) and "loss" in source.code(target.targets[0]) and target.value is node
            if named and not isinstance(node.right, ast.Constant):
                yield node, source.replace(node.right, f"({source.code(node.right)}).detach()")


@operator("batch-norm-epsilon")
def batch_norm_epsilon(source: Source) -> Found:
    """The number of channels is given as the epsilon of a normalisation."""
    for call in source.calls:
        if name_of(call.func).startswith("BatchNorm") and len(call.args) == 1 and not call.keywords:
            yield call, source.replace(call.args[0], f"{source.code(call.args[0])}, {source.code(call.args[0])}")


def _after_models(source: Source, text: str) -> Found:
    """Yield insertions of a line behind the construction of each model, with its name in place of MODEL."""
    for made in source.built("model"):
        if isinstance(made.targets[0], ast.Name) and source.whole(made):
            yield made, source.insert_after(made, text.replace("MODEL", made.targets[0].id))


@operator("constant-initialisation")
def constant_initialisation(source: Source) -> Found:
    """All weights begin at the same value."""
    return _after_models(source, "[__import__('torch').nn.init.constant_(p, 0.01) for p in MODEL.parameters()]")


@operator("model-frozen")
def model_frozen(source: Source) -> Found:
    """Half of the parameters are frozen at random values."""
    half = "len(list(MODEL.parameters())) // 2"
    return _after_models(source, f"[p.requires_grad_(False) for p in list(MODEL.parameters())[: {half}]]")


@operator("targets-shuffled")
def targets_shuffled(source: Source) -> Found:
    """Targets are rolled by one sample: they belong to other inputs."""
    for call in source.calls:
        name = name_of(call.func)
        if len(call.args) >= 2 and (name in ("criterion", "loss_fn") or name.endswith(("mse_loss", "cross_entropy"))):
            yield call, source.replace(call.args[1], f"({source.code(call.args[1])}).roll(1, 0)")
