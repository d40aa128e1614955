"""Losses and their inputs, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Call, Program, Suspicion

_CROSS_ENTROPY = ("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss")
_BCE_LOGITS = ("torch.nn.functional.binary_cross_entropy_with_logits", "torch.nn.BCEWithLogitsLoss")
_NLL = ("torch.nn.functional.nll_loss", "torch.nn.NLLLoss")
_BCE = ("torch.nn.functional.binary_cross_entropy", "torch.nn.BCELoss")
_KL_FUNCTION, _KL_CLASS = "torch.nn.functional.kl_div", "torch.nn.KLDivLoss"
_NUMBER_OF_CLASSES = re.compile(r"shape|size\(|numel|len\(|class|vocab|\bn_|num_|_dim|\bdim\b")
"""Names of a factor that undoes the division by the number of classes."""
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
    for call, function in program.of_objects:
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
    yield from _after(
        program, (_KL_FUNCTION, _KL_CLASS), ("softmax", "linear", "relu", "sigmoid"),
        "the KL divergence is computed of values that are not log-probabilities",
        "expects log-probabilities as the input",
        "pass the input through `log_softmax`",
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


def kl_reduction_mean(program: Program) -> Iterator[Suspicion]:
    """Yield KL divergences that are averaged over the classes, unless a factor undoes it."""
    for call in program.named(_KL_FUNCTION, _KL_CLASS):
        first = 2 if call.name == _KL_FUNCTION else 0
        legacy = call.argument(first, "size_average") or call.argument(first + 1, "reduce")
        given = call.argument(first + 2, "reduction")
        if call.unpacks or legacy is not None:
            continue
        if given is not None and not (isinstance(given, ast.Constant) and given.value == "mean"):
            continue
        factors = [factor for one in _uses(call, program) for factor in _factors(one)]
        if any(_NUMBER_OF_CLASSES.search(ast.unparse(factor)) for factor in factors):
            continue
        weighted = any(isinstance(one, ast.Constant) and one.value not in (0, 1) for one in factors)
        yield Suspicion(
            call.node,
            "the KL divergence is averaged over the classes as well: it is smaller by their number",
            f"divides by samples times classes{'' if given is not None else ', by default'}",
            'pass `reduction="batchmean"`, and choose the weight of the term again',
            confidence=Confidence.MEDIUM if given is None and not weighted else Confidence.LOW,
        )


def _uses(made: Call, program: Program) -> Iterator[Call]:
    """Yield a call of a loss, and the calls of the object that it makes."""
    yield made
    if made.name == _KL_CLASS:
        for call in program.calls:
            if not call.name and isinstance(call.node.func, ast.Name | ast.Attribute):
                if program.values.origin(call.node.func, call.context, call.order)[0] is made.node:
                    yield call


def _factors(call: Call) -> Iterator[ast.expr]:
    """Yield the factors of the result of a call in its statement."""
    for node in ast.walk(call.statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right)
            holds = [any(part is call.node for part in ast.walk(side)) for side in sides]
            if holds[0] != holds[1]:
                yield sides[holds[0]]


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
