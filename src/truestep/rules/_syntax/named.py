"""Statements that only name a method, without the parentheses that call it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import Context, Kind, Program, Suspicion


def named_only(program: Program, harm: str, method: str, kind: Kind | None = None) -> Iterator[Suspicion]:
    """Yield statements that name a method and do not call it.

    Args:
        program: the file.
        harm: the consequence, for the message.
        method: name of the method.
        kind: the kind of the object that the method belongs to; None for any object.
    """
    for node, context, order in program.bare:
        if node.attr == method and _belongs(node.value, kind, context, order, program):
            text = ast.unparse(node)
            yield Suspicion(
                node,
                f"`{text}` is named and not called: {harm}",
                "has no parentheses",
                f"call it: `{text}()`",
            )


def _belongs(node: ast.expr, kind: Kind | None, context: Context, order: int, program: Program) -> bool:
    return kind is None or program.kinds.is_a(node, kind, context, order)
