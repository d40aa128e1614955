"""The options that choose rules, with completion of their ids."""

from __future__ import annotations

from typing import Annotated

import typer

from truestep.cli.shell import completion

Select = Annotated[
    list[str] | None,
    typer.Option(metavar="RULES", help="Check only these rules.", autocompletion=completion.rules),
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="RULES", help="Skip these rules.", autocompletion=completion.rules)
]
LintSelect = Annotated[
    list[str] | None,
    typer.Option(metavar="RULES", help="Check only these rules.", autocompletion=completion.lint_rules),
]
LintIgnore = Annotated[
    list[str] | None,
    typer.Option(metavar="RULES", help="Skip these rules.", autocompletion=completion.lint_rules),
]
