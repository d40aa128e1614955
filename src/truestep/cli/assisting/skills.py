"""``truestep skills``: list the skills for coding assistants, or install them into a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.assistants.skills import FOLDERS, install
from truestep.assistants.skills import skills as all_skills
from truestep.errors import UsageError
from truestep.report.excerpt import wrap
from truestep.source import displayed


def skills(
    action: Annotated[
        Literal["list", "install"],
        typer.Argument(metavar="ACTION", help="list: show the skills; install: write their files."),
    ] = "list",
    assistant: Annotated[
        Literal["agents", "claude", "codex", "copilot", "cursor"] | None,
        typer.Option("--for", help="Write to this assistant's folder in the project.", show_default="agents"),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write to this folder instead.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were changed.")] = False,
) -> None:
    """List the skills for coding assistants, or install them into a project.

    A skill is a folder with a SKILL.md, which teaches an assistant when to run which command. The folders, below the
    working directory: .agents/skills (agents, codex), .claude/skills, .cursor/skills, .github/skills (copilot). A file
    that you changed is never overwritten without --force.
    """
    if action == "list":
        if assistant is not None or to is not None or force:
            raise UsageError(
                "--for, --to and --force are options of `truestep skills install`",
                expected="expected no option with list",
                remedy="run `truestep skills install` with them",
            )
        for skill in all_skills():
            print(skill.name)
            for line in wrap(skill.description, 96):
                print(f"    {line}")
        return
    if assistant is not None and to is not None:
        raise UsageError(
            f"both --for {assistant} and --to {to} were given",
            expected="expected one of them",
            remedy=f"leave out --for: the files go to {to}",
        )
    folder = to or Path.cwd() / FOLDERS[assistant or "agents"]
    for path, state in install(folder, force=force):
        print(f"{state:9} {displayed(str(path))}")
