"""``truestep mcp``: serve the Model Context Protocol to a coding assistant."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from truestep.errors import PackageMissing, UsageError


def mcp(
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run only scripts at or below this folder; default: the working directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve lint, run, check, explain, prove and tune to a coding assistant, as tools of the Model Context Protocol.

    The assistant starts this command and talks to it over standard input and output. Each call has a limit of its time,
    and runs in a separate process.
    """
    if find_spec("mcp") is None:
        raise PackageMissing(
            "the server needs the package mcp, which is not installed",
            expected="expected the SDK of the Model Context Protocol, version 2",
            remedy="pip install 'truestep[mcp]'",
        )
    folder = Path.cwd() if root is None else root
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder",
            expected="expected the folder with the scripts",
            remedy="give another one with --root DIR",
        )
    from truestep.assistants.server import serve

    serve(folder)
