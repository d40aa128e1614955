"""Shapes that do not fit: the layer, its input, the origin of the input, and the number that would fit."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from torch import nn

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame
from truestep.postmortem.evidence.frame_values import count, shape
from truestep.postmortem.evidence.parties import operands

PRODUCT = (
    r"^(?:\w+: )?mat1 and mat2 shapes cannot be multiplied \((?P<a>\d+)x(?P<b>\d+) and (?P<c>\d+)x(?P<d>\d+)\)"
    r"|^Expected size for first two dimensions of batch2 tensor to be: \[\d+, \d+\]"
    r"|^size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(\d+\)"
)
CHANNELS = r"^Given groups=\d+, weight of size \[[\d, ]+\], expected input\[[\d, ]+\] to have (?P<want>\d+) channels"
ROWS = r"^Expected input batch_size \((?P<a>\d+)\) to match target batch_size \((?P<b>\d+)\)"
BROADCAST = r"^The size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\) at non-singleton"
SLUG = "shapes-do-not-fit"


def product(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    layer = crash.inner_value("forward")
    if type(layer) is nn.Linear:
        given = crash.inner_value("forward", "input")
        if frame_values.is_tensor(given) and given.dim():
            return _linear(crash, layer, given)
        return None
    return None if layer is not None and frame_values.is_module(layer) else _operands(crash, match)


# --- Linear ----------------------------------------------------------------------------------------------------------


def _linear(crash: Crash, layer: Any, given: Any) -> PostMortem:
    sizes, wanted = tuple(given.shape), int(layer.in_features)
    name = crash.name_of(layer)
    what = f"`{name}`" if name else "a Linear"
    flat = math.prod(sizes[1:])
    called = f"Linear({wanted}, {layer.out_features})"
    facts: list[tuple[str, str]] = []
    if len(sizes) > 2 and flat == wanted:
        message = f"{what} takes {wanted:,} numbers per sample and was given them unflattened"
        help = f"flatten the input of {what}: `x = x.flatten(1)`, or `nn.Flatten()` before it"
        facts.append(("got", f"{shape(sizes)}, which is ({sizes[0]}, {flat}) when flattened"))
    elif len(sizes) == 4:
        message = f"{what} takes {wanted:,} numbers per sample and was given images that are not flattened"
        help = f"flatten the input with `x.flatten(1)`, and make {what} with `in_features={flat}`"
        facts.append(("got", f"{shape(sizes)}, which is {flat:,} numbers per sample when flattened"))
    else:
        message = f"{what} takes {wanted:,} numbers per sample and was given {sizes[-1]:,}"
        help = f"make {what} with `in_features={sizes[-1]}`, or give it {wanted:,} numbers"
        if len(sizes) > 1 and wanted in sizes[:-1]:
            at = sizes.index(wanted)
            help = f"move dimension {at} of the input of {what} to the end: `x.transpose({at}, -1)`"
            facts.append(
                ("got", f"{shape(sizes)}: dimension {at} has size {wanted:,}, but a Linear multiplies the last one")
            )
    return _of_layer(crash, layer, message, f"{called} was given {shape(sizes)}", facts, help)


def _of_layer(
    crash: Crash, layer: Any, message: str, label: str, facts: list[tuple[str, str]], help: str
) -> PostMortem:
    related = []
    before = _before(crash, layer)
    if before is not None:
        facts.insert(0, ("from", before))
    frame = crash.last
    source = _source(crash, frame)
    if source is not None and before is None:
        related.append(source)
    name = crash.name_of(layer)
    built = crash.built(layer, name)
    if built is not None and built.line != frame.site.line:
        related.append(Mark(built, f"`{name}` is made here" if name else "it is made here"))
    return PostMortem(
        slug=SLUG,
        error="",
        message=message,
        primary=Mark(frame.site, label),
        related=tuple(related),
        facts=tuple(facts),
        help=help,
    )


def _before(crash: Crash, layer: Any) -> str | None:
    """Return a description of the Sequential's layer that made the input of the failing one."""
    for holder in crash.inside("forward"):
        if type(holder) is not nn.Sequential:
            continue
        parts = list(frame_values.children(holder).items())
        at = next((number for number, (_, part) in enumerate(parts) if part is layer), 0)
        if at:
            before = parts[at - 1][1]
            name = crash.name_of(before)
            return f"the output of {f'`{name}`, a ' if name else 'the '}{type(before).__name__} just before it"
    return None


def _source(crash: Crash, frame: Frame) -> Mark | None:
    """Return a mark at the line that set the argument of the failed call."""
    if not isinstance(frame.node, ast.Call) or not frame.node.args:
        return None
    argument = frame.node.args[0]
    origin = crash.origin(frame, argument)
    if origin is None or (origin.site.path, origin.site.line) == (frame.site.path, frame.site.line):
        return None
    value = frame.value(argument)
    sizes = f" {shape(value.shape)}" if frame_values.is_tensor(value) else ""
    return Mark(origin.site, f"`{ast.unparse(argument)}`{sizes} comes from here")


# --- operators -------------------------------------------------------------------------------------------------------


def _tensors(frame: Frame) -> list[tuple[str, Any, ast.expr]] | None:
    pair = operands(frame)
    found = [(ast.unparse(node), frame.value(node), node) for node in pair]
    if len(found) != 2 or not all(value is not MISSING and frame_values.is_tensor(value) for _, value, _ in found):
        return None
    return found if not _runs_code_of_torch(frame) else None


def _runs_code_of_torch(frame: Frame) -> bool:
    """Return True if Python code of torch ran below a frame: the error is then not about the frame's operands."""
    return bool(frame.crash.inner)


def _sources(crash: Crash, found: list[tuple[str, Any, ast.expr]]) -> tuple[Mark, ...]:
    marks = []
    for name, value, node in found:
        origin = crash.origin(crash.last, node)
        if origin is not None and origin.site.line != crash.last.site.line:
            marks.append(Mark(origin.site, f"`{name}` {shape(value.shape)} comes from here"))
    return tuple(marks)


def _operands(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    """Explain ``a @ b`` of two tensors with shapes that do not fit."""
    found = _tensors(crash.last)
    if found is None:
        return None
    (one, a, _), (two, b, _) = found
    if a.dim() < 1 or b.dim() < 1:
        return None
    inner = b.shape[-2] if b.dim() > 1 else b.shape[0]
    if a.shape[-1] == inner or (match["b"] and (a.shape[-1], inner) != (int(match["b"]), int(match["c"]))):
        return None
    help = f"make the last dimension of `{one}` and the {'second last' if b.dim() > 1 else 'length'} of `{two}` equal"
    if b.dim() > 1 and a.shape[-1] == b.shape[-1]:
        help = f"multiply by the transposed matrix: `{two}.mT`"
    elif a.dim() > 1 and a.shape[-2] == inner:
        help = f"multiply the transposed matrix: `{one}.mT`"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{one}` has {a.shape[-1]:,} columns and `{two}` has {count(int(inner), 'row')}",
        primary=crash.fails(f"{shape(a.shape)} times {shape(b.shape)}"),
        related=_sources(crash, found),
        help=help,
    )


def broadcast(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    """Explain an elementwise operation on two tensors of different sizes."""
    found = _tensors(crash.last)
    if found is None:
        return None
    (one, a, _), (two, b, _) = found
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    if all(x == y or 1 in (x, y) for x, y in pairs):
        return None
    help = f"give `{one}` and `{two}` the same shape before this line"
    if a.dim() == b.dim() == 2 and tuple(a.shape) == tuple(reversed(b.shape)):
        help = f"transpose one of them: `{two}.mT`"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{one}` is {shape(a.shape)} and `{two}` is {shape(b.shape)}",
        primary=crash.fails("these two do not broadcast: sizes are compared from the last dimension"),
        related=_sources(crash, found),
        help=help,
    )


# --- channels --------------------------------------------------------------------------------------------------------


def channels(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    """Explain a convolution that was given a wrong number of channels."""
    layer = crash.inner_value("forward")
    given = crash.inner_value("forward", "input")
    if layer is None or not type(layer).__name__.startswith("Conv") or not frame_values.is_tensor(given):
        return None
    wanted, sizes = int(match["want"]), tuple(given.shape)
    dimensions = 2 if type(layer) is nn.Conv2d else 1 if type(layer) is nn.Conv1d else 3
    name = crash.name_of(layer)
    what = f"`{name}`" if name else f"a {type(layer).__name__}"
    if len(sizes) != dimensions + 2 or wanted == sizes[1]:
        return None
    message = f"{what} takes {count(wanted, 'channel')} and was given {sizes[1]:,}"
    facts = [
        ("got", f"{shape(sizes)}, read as (batch, channels, {', '.join(('time', 'height', 'width')[-dimensions:])})")
    ]
    if dimensions == 1:
        facts = [("got", f"{shape(sizes)}, read as (batch, channels, length)")]
    help = f"make {what} with `in_channels={sizes[1]}`, or give it {count(wanted, 'channel')}"
    if sizes[-1] == wanted:
        order = ", ".join(map(str, (0, dimensions + 1, *range(1, dimensions + 1))))
        facts[0] = ("got", f"{shape(sizes)}: the channels are last, but torch expects them second")
        help = f"move the channels to the second place: `x.permute({order})`"
    kind = f"{type(layer).__name__}({layer.in_channels}, {layer.out_channels})"
    return _of_layer(crash, layer, message, f"{kind} was given {shape(sizes)}", facts, help)


# --- losses ----------------------------------------------------------------------------------------------------------


def rows(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    """Explain a loss with unequal numbers of predictions and targets."""
    frame = crash.last
    if not isinstance(frame.node, ast.Call) or len(frame.node.args) < 2:
        return None
    found = [(ast.unparse(node), frame.value(node), node) for node in frame.node.args[:2]]
    given = (crash.inner_value("cross_entropy", "input"), crash.inner_value("cross_entropy", "target"))
    if given[0] is None:
        given = (crash.inner_value("nll_loss", "input"), crash.inner_value("nll_loss", "target"))
    if not all(map(frame_values.is_tensor, given)):
        return None
    one, two = (
        name if len(name) <= 40 else word for (name, _, _), word in zip(found, ("input", "target"), strict=True)
    )
    a, b = given
    related = _sources(crash, [(name, value, node) for name, value, node in found if frame_values.is_tensor(value)])
    facts = [("got", f"`{one}` {shape(a.shape)}, `{two}` {shape(b.shape)}")]
    if a.dim() and b.dim():
        message = f"there are {a.shape[0]:,} predictions for {b.shape[0]:,} targets"
        help = f"give one prediction per target: bring `{one}` to ({b.shape[0]}, classes)"
    else:
        message = "predictions and targets have other dimensions"
        help = f"give one target per prediction: bring `{two}` to ({a.shape[0] if a.dim() else 1},)"
    return PostMortem(
        slug=SLUG,
        error="",
        message=message,
        primary=crash.fails(f"`{one}` {shape(a.shape)} does not go with `{two}` {shape(b.shape)}"),
        related=related,
        facts=() if related else tuple(facts),
        help=help,
    )
