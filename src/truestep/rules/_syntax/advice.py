"""Statements that the documentation of torch advises against."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Call, Program, Suspicion, dotted

_OLD_AMP = re.compile(r"^torch\.(cuda|cpu)\.amp\.(?:\w+\.)?(autocast|GradScaler|custom_fwd|custom_bwd)$")
_CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "time.process_time", "timeit.default_timer")
_WAITS = {
    "item", "cpu", "numpy", "tolist", "synchronize", "backward", "nonzero", "print", "asnumpy", "wait", "barrier",
    "any", "all", "float", "int", "bool",
}  # fmt: skip
"""Calls that wait for the device, or may."""


def deprecated_amp_api(program: Program) -> Iterator[Suspicion]:
    """Yield calls by the old names of mixed precision."""
    for call in program.method("autocast", "GradScaler", "custom_fwd", "custom_bwd") if "amp" in program.text else ():
        text = dotted(call.node.func)
        head, dot, rest = text.partition(".")
        match = _OLD_AMP.match(f"{program.imports.get(head, '')}{dot}{rest}")
        if match is None or _chosen_by_version(head, call, program):
            continue
        yield Suspicion(
            call.node,
            f"`torch.{match[1]}.amp.{match[2]}` is deprecated",
            "warns, and is for one type of device",
            f"use `torch.amp.{match[2]}` with the type of the device",
        )


def _chosen_by_version(head: str, call: Call, program: Program) -> bool:
    """Return True if a name is imported in several ways, or under a condition: the other way is for another version."""
    imports = [one for one in program.module.bindings.get(head, ()) if one.how == "import"]
    if len(imports) > 1 and len({ast.unparse(one.node) for one in imports}) > 1 and "." not in dotted(call.node.func):
        return True
    if any(one.context.guards for one in imports):
        return True
    conditions = " ".join(ast.unparse(getattr(guard.node, "test", guard.node)) for guard in call.context.guards)
    return re.search(r"version|hasattr|greater|at_least|torch|except", conditions, re.IGNORECASE) is not None


def deprecated_backward_hook(program: Program) -> Iterator[Suspicion]:
    """Yield registrations of hooks that get the gradients of the last operation of a module."""
    for call in program.method("register_backward_hook"):
        owner = call.scope.name.rpartition(".")[2]
        if call.receiver is None or program.resolve(call) is not None or "register_backward_hook" in owner:
            continue
        if isinstance(call.receiver, ast.Call) and dotted(call.receiver.func) == "super":
            continue
        yield Suspicion(
            call.node,
            "`register_backward_hook` is deprecated: its gradients are those of the last operation of the module",
            "gets the gradients of one operation",
            f"call `{call.key or 'module'}.register_full_backward_hook(...)`",
            confidence=Confidence.HIGH
            if program.models.owner(call.receiver, call.context, call.order)
            else Confidence.LOW,
        )


def deprecated_torchscript(program: Program) -> Iterator[Suspicion]:
    """Yield traces and scripts of `torch.jit`, other than in tests that something can be compiled."""
    for call in program.named("torch.jit.trace", "torch.jit.script"):
        if any(part.startswith("test") for part in call.scope.name.split(".")):
            continue
        name = dotted(call.node.func).rpartition(".")[2]
        yield Suspicion(
            call.node,
            f"`torch.jit.{name}` is deprecated",
            "compiles by TorchScript",
            "use `torch.export.export` for a file, or `torch.compile` for speed",
            confidence=Confidence.LOW,
        )


def data_parallel_module(program: Program) -> Iterator[Suspicion]:
    """Yield constructions of `DataParallel`."""
    for call in program.named("torch.nn.DataParallel", "torch.nn.parallel.DataParallel"):
        yield Suspicion(
            call.node,
            "`DataParallel` copies the model to the devices in every forward pass, from one process",
            "one process for all devices",
            "use `DistributedDataParallel` with one process for each device",
            confidence=Confidence.LOW,
        )


def timing_without_synchronise(program: Program) -> Iterator[Suspicion]:
    """Yield differences of times with the call of a model on a device between them, and nothing that waits for it."""
    if not _on_device(program) or re.search(r"synchronize|\.Event\(|barrier", program.text):
        return
    for call in program.named(*_CLOCKS):
        start = _start(call)
        if start is None:
            continue
        one = program.values.only(start, call.context, call.order)
        begun = None if one is None or one.value is None else program.call_at.get(one.value)
        if one is None or begun is None or begun.name != call.name or one.context.loop is not call.loop:
            continue
        between = [each for each in call.scope.calls if one.order < each.order < call.order]
        forwards = [each for each in program.flow.own(call.scope) if each.act is Act.FORWARD and each.call in between]
        waits = [each for each in between if each.method in _WAITS or program.resolve(each) is not None]
        if forwards and not waits and all(each.call is not None for each in forwards):
            yield Suspicion(
                call.node,
                "the time is read before the device has done the work of the model",
                "measures the time for queuing",
                "call `torch.cuda.synchronize()` before each time",
                ((forwards[-1].node, "is only queued"), (begun.node, "the start")),
                Confidence.MEDIUM,
            )


def _on_device(program: Program) -> bool:
    """Return True if a file moves something to a CUDA device by name."""
    if any(not call.node.args and call.receiver is not None for call in program.method("cuda")):
        return True
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith("cuda")
        for call in (*program.method("to"), *program.named("torch.device"))
        for value in call.arguments()
        for part in ast.walk(value)
    )


def _start(call: Call) -> str | None:
    """Return the name that is subtracted from a time; None if it is none."""
    for node in ast.walk(call.statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and node.left is call.node:
            return dotted(node.right) or None
    return None
