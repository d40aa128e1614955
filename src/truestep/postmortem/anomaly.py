"""A gradient that is NaN under ``detect_anomaly``: from an earlier non-finite value, or from the square root of 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from truestep.events import Site
from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame

MESSAGE = r"^Function '(?P<op>\w+?)Backward\d*' returned nan values in its \d+th output"
_LARGEST = 1 << 24


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    for frame in reversed(crash.frames):
        if frame.node is None or frame.file is None or frame.scope is None:
            continue
        calls = _calls(frame)
        died = _not_finite(crash, frame, calls) or _no_slope(crash, frame, calls)
        if died is not None:
            return died
    return None


def _calls(frame: Frame) -> list[ast.AST]:
    """Return the expressions that the root of the backward pass was computed from, the earliest first."""
    node = frame.node
    if frame.file is None or frame.scope is None or not isinstance(node, ast.Call):
        return []
    begun = node.func.value if isinstance(node.func, ast.Attribute) else node
    return sorted(frame.file.sources(frame.scope, begun), key=lambda one: getattr(one, "lineno", 0))


def _variables(frame: Frame, made: list[ast.AST]) -> Iterator[tuple[str, Any, ast.expr]]:
    seen: set[str] = set()
    for one in made:
        for node in ast.walk(one):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) not in seen:
                seen.add(ast.unparse(node))
                value = frame.value(node)
                if value is not MISSING and frame_values.is_tensor(value) and _is_read(value):
                    yield ast.unparse(node), value, node


def _is_read(value: Any) -> bool:
    return bool(value.is_cpu and value.is_floating_point() and 0 < value.numel() <= _LARGEST)


def _not_finite(crash: Crash, frame: Frame, made: list[ast.AST]) -> PostMortem | None:
    """Explain the NaN by the earliest variable on the way to the loss that is not finite."""
    for name, value, node in _variables(frame, made):
        crash.check()
        bad = _count_bad(value)
        if not bad:
            continue
        origin = crash.origin(frame, node)
        place = origin.site if origin is not None else None
        return _died(
            crash,
            f"`{name}` holds {bad:,} of {value.numel():,} values that are not finite, before any gradient",
            () if place is None else (Mark(place, f"`{name}` comes from here"),),
            f"check how `{name}` is computed: the loss and its gradient follow from it",
        )
    return None


def _no_slope(crash: Crash, frame: Frame, made: list[ast.AST]) -> PostMortem | None:
    """Explain the NaN by the only square root on the way to the loss of a variable with a 0: its slope is infinite."""
    found: list[tuple[Site, str]] = []
    for one in made:
        for node in ast.walk(one):
            given = _under_root(frame, node)
            value = MISSING if given is None else frame.value(given)
            if given is not None and value is not MISSING and frame_values.is_tensor(value) and _is_read(value):
                if _holds_zero(value):
                    found.append((frame.place(node), ast.unparse(given)))
    if len(found) != 1:
        return None
    site, name = found[0]
    return _died(
        crash,
        f"the square root has an infinite slope at 0, and `{name}` holds a 0",
        (Mark(site, f"takes the root of `{name}`"),),
        f"keep it away from 0: `{name} + 1e-12`, or `{name}.clamp(min=1e-12)`",
    )


def _under_root(frame: Frame, node: ast.AST) -> ast.expr | None:
    """Return the argument of a square root, in any of its spellings."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="sqrt"), args=[given]) if frame.value(owner) is torch:
            return given
        case ast.Call(func=ast.Attribute(value=given, attr="sqrt"), args=[]):
            return given
        case ast.BinOp(left=given, op=ast.Pow(), right=ast.Constant(value=0.5)):
            return given
        case _:
            return None


def _died(crash: Crash, message: str, related: tuple[Mark, ...], help: str) -> PostMortem:
    return PostMortem(
        slug="nan-in-backward",
        error="",
        message=message,
        primary=crash.fails("its gradient is NaN"),
        related=related,
        help=help,
    )


def _count_bad(value: Any) -> int:
    with torch.no_grad():
        return int((~torch.isfinite(value)).sum())


def _holds_zero(value: Any) -> bool:
    with torch.no_grad():
        return bool((value == 0).any())
