"""``truestep lsp``: serve findings of `truestep lint` to an editor. Needs no torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.cli.shell.rule_options import Ignore, Select
from truestep.config import load_options
from truestep.errors import PackageMissing
from truestep.findings import Confidence
from truestep.rules import rule


def lsp(
    select: Select = None,
    ignore: Ignore = None,
    confidence: Annotated[
        Literal["high", "medium", "low"], typer.Option(help="Least confidence of the findings to show.")
    ] = "medium",
) -> None:
    """Show findings of lint in an editor, over the Language Server Protocol.

    The editor starts this command and talks to it over standard input and output. It shows findings while a file is
    written, the manual page of a rule, fixes, and a comment that allows a finding. No file is run.
    """
    if find_spec("pygls") is None:
        raise PackageMissing(
            "the server needs the package pygls, which is not installed",
            expected="expected the implementation of the Language Server Protocol, version 2",
            remedy="pip install 'truestep[lsp]'",
        )
    chosen = load_options(Path.cwd(), select=select, ignore=ignore)
    for id in (*chosen.select, *chosen.ignore):
        rule(id)
    from truestep.editors.checked import Choice
    from truestep.editors.server import serve

    serve(Choice(Confidence(confidence), chosen.select if select else None, chosen.ignore if ignore else None))
