"""Options of commands that show fixes or make them."""

from __future__ import annotations

from typing import Annotated

import typer

Fix = Annotated[bool, typer.Option("--fix", help="Edit the files, except for fixes that must be reviewed.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show the fixes as a diff, and edit nothing.")]
UnsafeFixes = Annotated[
    bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: fixes that must be reviewed as well.")
]
ShowFixes = Annotated[bool, typer.Option("--fix", help="Show the fixes of the findings as a diff after the report.")]
Write = Annotated[
    bool, typer.Option("--write", help="With --fix: edit the files, except for fixes that must be reviewed.")
]
WriteUnsafe = Annotated[
    bool, typer.Option("--unsafe-fixes", help="With --write: make fixes that must be reviewed as well.")
]
