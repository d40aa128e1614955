"""Out of memory: the size of the request, and the owners of the memory in use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import torch

from truestep.findings import PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import Crash
from truestep.postmortem.evidence.frame_values import count, dtype, shape
from truestep.postmortem.evidence.parties import operands

CPU = r"DefaultCPUAllocator: can't allocate memory: you tried to allocate (?P<bytes>\d+) bytes"
CUDA = r"^(?:CUDA|HIP|XPU) out of memory\. Tried to allocate (?P<amount>[\d.]+ [KMGT]iB)"
_LEAST = 1 << 20
_MOST = 4


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    asked = amount(int(match["bytes"])) if "bytes" in match.groupdict() else match["amount"]
    facts = []
    made = _made(crash)
    if made:
        facts.append(("made", made))
    owners = _owners(crash)
    total = sum(size for _, size in owners)
    for what, size in owners[:_MOST]:
        facts.append(("holds", f"{amount(size)}: {what}"))
    kept = _kept_graphs(crash)
    if kept:
        facts.append(("keeps", f"{kept[0]} holds {count(kept[1], 'tensor')} with the graphs behind them"))
    if not facts:
        return None
    help = "reduce the batch size or the tensors of this line"
    if kept:
        help = f"append `.item()` or `.detach()` to {kept[0]}, unless backward shall go through all of them"
    elif made:
        help = "process a part of these at a time: the result of this line does not fit"
    held = f", beside {amount(total)} in variables" if total else ""
    return PostMortem(
        slug="out-of-memory",
        error="",
        message=f"this line asked for {asked}{held}",
        primary=crash.fails(f"asks for {asked}"),
        facts=tuple(facts),
        help=help,
    )


def amount(size: float) -> str:
    """Return a number of bytes as text.

    >>> amount(3 << 30), amount(1536)
    ('3.0 GiB', '1.5 KiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


def _made(crash: Crash) -> str:
    """Return a sentence on the shape that the two operands broadcast to, if it is larger than both; else ""."""
    nodes = operands(crash.last)
    values = [crash.last.value(node) for node in nodes]
    if len(values) != 2 or not all(map(frame_values.is_tensor, values)):
        return ""
    a, b = values
    sizes = [max(x, y) for x, y in zip(_padded(a, b), _padded(b, a), strict=True)]
    if math.prod(sizes) <= max(a.numel(), b.numel()):
        return ""
    return f"{shape(a.shape)} and {shape(b.shape)} become {shape(sizes)} of {dtype(a)}"


def _padded(one: Any, other: Any) -> list[int]:
    return [1] * (other.dim() - one.dim()) + [int(size) for size in one.shape]


def _owners(crash: Crash) -> list[tuple[str, int]]:
    """Return the owners of memory in bytes, largest first: weights, gradients, optimizer states, other variables."""
    counted: set[int] = set()
    found: list[tuple[str, int]] = []

    def add(what: str, tensors: Iterable[Any]) -> None:
        size = 0
        for tensor in tensors:
            crash.check()
            if not frame_values.is_tensor(tensor) or tensor.is_meta or tensor.layout is not torch.strided:
                continue
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in counted:  # views share the memory of their base
                counted.add(storage.data_ptr())
                size += storage.nbytes()
        if size >= _LEAST:
            found.append((what, size))

    modules = list(crash.modules())
    for name, module, _ in modules:
        add(f"the weights of `{name}`", _weights(module))
    for name, module, _ in modules:
        add(f"the gradients of `{name}`", [weight.grad for weight in _weights(module) if weight.grad is not None])
    for name, optimizer, _ in crash.optimizers():
        states = frame_values.attributes(optimizer).get("state", {})
        add(f"the state of `{name}`", [v for state in states.values() if type(state) is dict for v in state.values()])
    for frame in crash.frames:
        for name, value in frame.names.items():
            if not frame_values.is_module(value):
                add(f"`{name}`", [tensor for _, tensor in frame_values.held({name: value})])
    return sorted(found, key=lambda entry: -entry[1])


def _weights(module: Any) -> list[Any]:
    return [weight for _, one in frame_values.tree(module) for weight in frame_values.parameters(one).values()]


def _kept_graphs(crash: Crash) -> tuple[str, int] | None:
    """Return the list that keeps most tensors with their graphs, and how many; at least eight."""
    best: tuple[str, int] | None = None
    for frame in crash.frames:
        for name, value in frame.names.items():
            if type(value) is list:
                number = sum(frame_values.is_tensor(item) and item.grad_fn is not None for item in value)
                if number >= 8 and (best is None or number > best[1]):
                    best = (f"`{name}`", number)
    return best


KINDS = (RuntimeError, torch.OutOfMemoryError)
