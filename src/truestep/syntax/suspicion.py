"""A failure that the syntax of a file shows."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from truestep.findings import Confidence


@dataclass(frozen=True, slots=True, eq=False)
class Suspicion:
    """One failure at one place of a file; the texts have the form of those of `truestep.findings.Finding`."""

    node: ast.AST
    """The faulty expression or statement."""
    message: str
    label: str
    help: str
    related: tuple[tuple[ast.AST, str], ...] = ()
    """Further places with labels."""
    confidence: Confidence = Confidence.HIGH
