"""Operations on tensors of different devices or dtypes: which is which, and the line that created or moved each."""

from __future__ import annotations

import ast
import re
from typing import Any

from torch import nn

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import Crash
from truestep.postmortem.evidence.parties import Party, listed, moved, parties, source, thrown_away

MESSAGE = (
    r"^Expected all tensors to be on the same device"
    r"|^Tensor on device \S+ is not on the expected device"
    r"|^Input type \(.*\) and (?:weight|bias) type \(.*\) should be the same"
    r"|must have the same dtype"
    r"|^RNN input dtype"
    r"|^input must have the type torch\.\w+, got type torch\.\w+"
    r"|^expected (?:target dtype|scalar type|m1 and m2)"
    r"|^result type \w+ can't be cast to the desired output type"
    r"|^Expected tensor for argument #1 'indices' to have one of the following scalar types"
)


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    met = parties(crash)
    if len(met) != 2:
        return None
    one, two = met
    if one.tensor.device != two.tensor.device:
        return _devices(crash, one, two)
    if isinstance(two.layer, nn.Embedding):
        return _rows_by_float(crash, one, two)
    if two.layer is None and crash.message.startswith(("expected target dtype", "expected scalar type Long")):
        return _labels(crash, one, two)
    if one.tensor.dtype != two.tensor.dtype:
        return _types(crash, one, two)
    return None


def _called(party: Party) -> str:
    if party.layer is not None:
        return f"the weights of `{party.name}`" if party.name else f"the weights of a {type(party.layer).__name__}"
    if party.name:
        return f"`{party.name}`"
    return f"the {party.role} of the loss" if party.role else "its input"


def _are(party: Party) -> str:
    return "are" if party.layer is not None else "is"


# --- devices ---------------------------------------------------------------------------------------------------------


def _devices(crash: Crash, one: Party, two: Party) -> PostMortem | None:
    if not (one.name or two.name or one.role):
        return None
    marks, help = [], ""
    target = two.tensor.device if one.tensor.device.type == "cpu" else one.tensor.device
    for party in (one, two):
        device = party.tensor.device
        if party.layer is not None:
            marks += _weights(crash, party, f"on {device}")
            continue
        lost = thrown_away(crash, party)
        made = source(crash, party, f"{_called(party)} comes from here, on {device}")
        marks += [made] if made is not None else []
        if lost is not None and device != target:
            site, text = lost
            marks.append(Mark(site, f"returns a copy that is not assigned: {_called(party)} stays on {device}"))
            help = (
                f"assign the copy: `{party.name} = {text}`"
                if text.startswith(party.name)
                else f"assign the result of `{text}`"
            )
    help = help or _move(crash, one, two, target)
    return PostMortem(
        slug="different-devices",
        error="",
        message=f"{_called(one)} {_are(one)} on {one.tensor.device}, {_called(two)} {_are(two)} on {two.tensor.device}",
        primary=crash.fails("they meet here"),
        related=tuple(marks),
        help=help,
    )


def _move(crash: Crash, one: Party, two: Party, target: Any) -> str:
    behind = one if one.tensor.device != target else two
    if behind.layer is not None:
        plain = listed(crash, behind.layer) if "." not in behind.name else ""
        if plain:
            return f"put the layers of `{plain}` into an `nn.ModuleList`, which moves with the model"
        return f"move the model before this line: `.to('{target}')`"
    if not behind.name:
        return f"move both to {target} before this line"
    return f"write `{behind.name} = {behind.name}.to('{target}')` before this line"


def _weights(crash: Crash, party: Party, state: str) -> list[Mark]:
    """Return the line that moved a layer's weights, or else the line that created it."""
    found = moved(crash, party.layer)
    if found is not None:
        call = f"`{found[1]}()` leaves the weights" if len(found[1]) <= 30 else "leaves the weights"
        return [Mark(found[0], f"{call} {state}")]
    built = crash.built(party.layer, party.name)
    return [Mark(built, f"`{party.name}` is made here, {state}")] if built is not None else []


# --- types -----------------------------------------------------------------------------------------------------------


def _types(crash: Crash, one: Party, two: Party) -> PostMortem | None:
    if not one.name and not two.name:
        return None
    a, b = frame_values.dtype(one.tensor), frame_values.dtype(two.tensor)
    marks = []
    for party, kind in ((one, a), (two, b)):
        if party.layer is not None:
            marks += _weights(crash, party, kind) if kind != "float32" else []
        else:
            made = source(crash, party, f"{_called(party)} comes from here, {kind}")
            marks += [made] if made is not None else []
    facts = []
    if "float64" in (a, b) and _from_numpy(crash, one if a == "float64" else two):
        facts.append(("note", "numpy defaults to float64, torch to float32"))
    return PostMortem(
        slug="different-types",
        error="",
        message=f"{_called(one)} {_are(one)} {a}, {_called(two)} {_are(two)} {b}",
        primary=crash.fails("they meet here"),
        related=tuple(marks),
        facts=tuple(facts),
        help=_convert(one, two, a, b),
    )


def _from_numpy(crash: Crash, party: Party) -> bool:
    origin = crash.origin(crash.last, party.node)
    return origin is not None and any(word in ast.unparse(origin.node) for word in ("from_numpy", "np.", "numpy"))


def _convert(one: Party, two: Party, a: str, b: str) -> str:
    name = one.name or "x"
    if two.layer is not None and b in ("float16", "bfloat16") and a == "float32":
        return f"keep the weights in float32 and use `torch.autocast`, or give it `{name}.to(torch.{b})`"
    if two.layer is not None and a == "uint8":
        return f"write `{name} = {name}.float() / 255` before this line"
    if a == "float64":
        return f"write `{name} = {name}.float()` where it is made"
    if b == "float64" and two.layer is None:
        return f"write `{two.name or 'y'} = {two.name or 'y'}.float()` where it is made"
    if two.layer is None and not two.tensor.is_floating_point():
        return f"write `{two.name or 'y'} = {two.name or 'y'}.to(torch.{a})` before this line"
    return f"write `{name} = {name}.to(torch.{b})` before this line"


def _labels(crash: Crash, one: Party, two: Party) -> PostMortem | None:
    kind = frame_values.dtype(two.tensor)
    name = two.name or "the target"
    made = source(crash, two, f"`{name}` comes from here, {kind}")
    like = tuple(two.tensor.shape) == tuple(one.tensor.shape)
    facts = (
        (("note", f"targets of the shape of the input {frame_values.shape(one.tensor.shape)} are probabilities"),)
        if like
        else ()
    )
    return PostMortem(
        slug="different-types",
        error="",
        message=f"{f'`{two.name}`' if two.name else 'the target'} is {kind}, and labels of classes are int64",
        primary=crash.fails("the loss takes whole numbers as labels"),
        related=() if made is None else (made,),
        facts=facts,
        help=f"write `{two.name or 'target'}.long()`",
    )


def _rows_by_float(crash: Crash, one: Party, two: Party) -> PostMortem | None:
    kind = frame_values.dtype(one.tensor)
    if not one.tensor.is_floating_point():
        return None
    made = source(crash, one, f"{_called(one)} comes from here, {kind}")
    what = f"`{two.name}`" if two.name else "an Embedding"
    return PostMortem(
        slug="different-types",
        error="",
        message=f"{what} looks rows up by whole numbers and was given {kind}",
        primary=crash.fails(f"{_called(one)} is {kind}"),
        related=() if made is None else (made,),
        help=f"write `{one.name or 'x'}.long()`",
    )
