"""Activations that do not fit the loss behind them."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.program import Uncertain, argument, dotted
from truestep.fixes.editing.tracing import Operation, Tracer, loss_input, loss_name
from truestep.fixes.fix import Fix

_SOFTMAX = frozenset({"softmax", "Softmax", "softmin", "Softmin", "Softmax2d"})
_SIGMOID = frozenset({"sigmoid", "Sigmoid"})
_LOG_SOFTMAX = frozenset({"log_softmax", "LogSoftmax"})
_CLAMPS = frozenset({
    "relu", "ReLU", "ReLU6", "relu6", "sigmoid", "Sigmoid", "tanh", "Tanh", "softplus", "Softplus", "hardsigmoid",
    "Hardsigmoid", "hardtanh", "Hardtanh", "softsign", "Softsign", "elu", "ELU", "selu", "SELU", "gelu", "GELU", "silu",
    "SiLU", "leaky_relu", "LeakyReLU", "clamp", "relu_", "softmax", "Softmax",
})  # fmt: skip


class _BeforeLoss(Fix):
    """Shared parts: the loss at the faulty place, and the operation that makes its input."""

    def before_loss(self, wanted: frozenset[str]) -> Operation:
        """Return the operation that makes the input of the loss.

        Raises:
            Uncertain: it is another one, or unknown.
        """
        return Tracer(self.program, self.names, wanted).last(loss_input(self.call()))

    def check_loss(self, *kinds: str) -> None:
        """Raise an error if the loss is known to be another one than these functions and classes of torch."""
        try:
            kind, _ = loss_name(self.names, self.call())
        except Uncertain:
            return
        if kind not in kinds:
            raise Uncertain

    def remove(self, operation: Operation, what: str) -> None:
        """Remove an operation; where other readers of the model lose it too, this is to be reviewed."""
        operation.undo(self.edits)
        self.safe = operation.local
        self.title = f"Remove the {what} before the loss"


class CrossEntropyOfLogits(_BeforeLoss):
    """Pass logits to the cross entropy."""

    rules = ("softmax-before-cross-entropy",)
    does = "removes the softmax before the loss"
    unsafe_if = "the softmax is in the model, and others read its outputs too"

    def edit(self) -> None:
        self.check_loss("CrossEntropyLoss", "cross_entropy")
        self.remove(self.before_loss(_SOFTMAX), "softmax")


class BinaryCrossEntropyOfLogits(_BeforeLoss):
    """Use the loss for probabilities; or pass logits, where the sigmoid is written in the loss."""

    rules = ("sigmoid-before-bce-with-logits",)
    does = "uses the binary cross entropy of probabilities, or removes a sigmoid that only the loss reads"
    unsafe_if = "the sigmoid is in the model, others read its outputs too, and the loss has weights"

    def edit(self) -> None:
        self.check_loss("BCEWithLogitsLoss", "binary_cross_entropy_with_logits")
        operation = self.before_loss(_SIGMOID)
        if operation.local:
            self.remove(operation, "sigmoid")
            return
        kind, settings = loss_name(self.names, self.call())
        simple = {"BCEWithLogitsLoss": "BCELoss", "binary_cross_entropy_with_logits": "binary_cross_entropy"}.get(kind)
        positional = [arg for arg in settings.args if arg.keyword is None]
        others = {arg.keyword.value for arg in settings.args if arg.keyword is not None} - {"reduction"}
        plain = not others and len(positional) <= (2 if settings is self.call() else 0)
        if simple is not None and plain and "autocast" not in self.program.text and self._only_use(settings):
            new = re.sub(rf"{kind}$", simple, self.program.code(settings.func))
            if self.names.full(settings.func) and "." not in new:
                raise Uncertain  # imported by its name
            self.edits.replace(settings.func, new)
            self.title = f"Use `{new}`, which takes probabilities"
        else:
            self.remove(operation, "sigmoid")

    def _only_use(self, settings: cst.Call) -> bool:
        """Return True if the loss at the faulty place is the only one with these settings."""
        call = self.call()
        name = dotted(call.func)
        if settings is call:
            return True
        readers = [node for node in self.program.walk(self.program.module, cst.Call) if dotted(node.func) == name]
        return len(readers) == 1


class UnclampedOutput(_BeforeLoss):
    """Remove the activation behind the last layer."""

    rules = ("activation-clamps-output",)
    does = "removes the activation before a loss that needs the whole range"
    unsafe_if = "always"

    def edit(self) -> None:
        operation = self.before_loss(_CLAMPS)
        made = re.search(r"its input comes from a (\w+)", self.wanted.label)
        if made is not None and made[1].lower().replace("_", "") != operation.name.lower().strip("_").replace("_", ""):
            raise Uncertain
        self.remove(operation, operation.name)
        self.safe = False


class SoftmaxOverClasses(_BeforeLoss):
    """Let the softmax run over the classes."""

    rules = ("softmax-wrong-dim",)
    does = "lets the softmax run over the classes, along dimension 1"
    unsafe_if = "the finding is not about the loss at its line"

    def edit(self) -> None:
        if "one output" in self.wanted.help:
            raise Uncertain
        if "`dim=-1`" in self.wanted.help:
            call, new = self.call(), "-1"
            name = (dotted(call.func) or "").rpartition(".")[2]
            if name not in _SOFTMAX | _LOG_SOFTMAX and not self._is_method(call):
                raise Uncertain
            self.safe = False
        else:
            operation = self.before_loss(_SOFTMAX | _LOG_SOFTMAX)
            call, new = operation.call, "1"
        layer = (dotted(call.func) or "").rpartition(".")[2][:1].isupper()
        method = not layer and not self.names.full(call.func)
        old = argument(call, 0 if layer or method else 1, "dim")
        if old is not None and self.program.code(old.value) == new:
            raise Uncertain
        self.edits.set_argument(call, old, "dim", new)
        self.title = f"Let the softmax run over the classes, `dim={new}`"

    def _is_method(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _SOFTMAX | _LOG_SOFTMAX


class LikelihoodOfLogits(_BeforeLoss):
    """Use the cross entropy, which takes logits."""

    rules = ("logits-into-probability-loss",)
    does = "uses the cross entropy in place of the negative log-likelihood of logits"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        call = self.call()
        kind, settings = loss_name(self.names, call)
        if "use `cross_entropy` on the logits" not in self.wanted.help or self._gets_probabilities():
            raise Uncertain
        new = {"NLLLoss": "CrossEntropyLoss", "nll_loss": "cross_entropy"}.get(kind)
        written = self.program.code(settings.func)
        if new is None or "." not in written:
            raise Uncertain
        self.edits.replace(settings.func, re.sub(rf"{kind}$", new, written))
        self.title = f"Use `{new}`, which takes logits"

    def _gets_probabilities(self) -> bool:
        if "logits" in self.wanted.message:
            return False
        try:
            self.before_loss(_SOFTMAX | _SIGMOID)
        except Uncertain:
            return "probabilities where" in self.wanted.message
        return True
