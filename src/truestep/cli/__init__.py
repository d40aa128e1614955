"""The command line: one file per command, read only when it is invoked.

Importing this module is cheap, and so is starting: ``truestep run`` must not import anything that the script's own
first lines could be meant to influence. Typer only parses here; the command's function is called after it has
finished, so that a script under ``truestep run`` sees neither its frames nor its handling of exceptions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from truestep.errors import TrueStepError

__all__ = ["COMMANDS", "Command", "main"]


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command's function lives, and what the list of commands says about it."""

    target: str
    """ "package.module:function"; the function takes what Typer parses and returns an exit status or None."""
    help: str
    settings: dict[str, object] = field(default_factory=dict)
    """Typer's context settings."""

    def load(self) -> Callable[..., object]:
        module, _, function = self.target.partition(":")
        loaded: Callable[..., object] = getattr(importlib.import_module(module), function)
        return loaded


_SCRIPTS_OWN: dict[str, object] = {"allow_interspersed_args": False, "ignore_unknown_options": False}
"""Everything after SCRIPT belongs to the script."""

COMMANDS: dict[str, Command] = {
    "run": Command(
        "truestep.cli.run:run",
        "Run a script and report its silent training failures.",
        _SCRIPTS_OWN,
    ),
    "prove": Command(
        "truestep.cli.prove:prove",
        "Compare a script with itself and the remedy of what was found.",
        _SCRIPTS_OWN,
    ),
    "overfit": Command(
        "truestep.cli.overfit:overfit",
        "Ask whether a script's model and loop can learn one batch.",
        _SCRIPTS_OWN,
    ),
    "tune": Command(
        "truestep.cli.tune:tune",
        "Measure what each recommended speed-up gives on a script.",
        _SCRIPTS_OWN,
    ),
    "profile": Command(
        "truestep.cli.profile:profile",
        "Show where the time and the memory of a script's steps go.",
        _SCRIPTS_OWN,
    ),
    "verify-resume": Command(
        "truestep.cli.verify_resume:verify_resume",
        "Kill a script, resume it, and tell the first step that differs.",
        _SCRIPTS_OWN,
    ),
    "new": Command("truestep.cli.new:new", "Write a training program to begin with."),
    "replay": Command("truestep.cli.replay:replay", "Report again on a recorded run."),
    "explain": Command("truestep.cli.explain:explain", "Show a rule's manual page, and prove it."),
    "rules": Command("truestep.cli.rules:rules", "List all rules."),
    "doctor": Command("truestep.cli.doctor:doctor", "Show what this machine has for training, and what to mend."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit.

    Args:
        arguments: what stands after ``truestep``; default is ``sys.argv[1:]``.

    Raises:
        SystemExit: always; 2 for what the command cannot use, 3 where an experiment cannot tell.
    """
    try:
        call = _parse(list(sys.argv[1:] if arguments is None else arguments))
        status = call()
    except TrueStepError as error:
        from truestep.cli._errors import show

        show(error, sys.stderr)
        status = error.exit_code
    sys.exit(status if isinstance(status, int) else 0)


def _parse(arguments: list[str]) -> Callable[[], object]:
    """Return the command's function with its arguments, or exit (help, version, usage errors)."""
    import typer

    invoked = next((argument for argument in arguments if not argument.startswith("-")), "")
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help="Own your PyTorch training loop, prove every step.")(_options())
    calls: list[Callable[[], object]] = []
    for name, command in COMMANDS.items():
        function = _later(command.load(), calls) if name == invoked else _unread
        summary = None if name == invoked else command.help
        app.command(name, help=summary, short_help=command.help, context_settings=dict(command.settings))(function)
    try:
        typer.main.get_command(app).main(arguments, prog_name="truestep")
    except SystemExit:
        if not calls:
            raise
    return calls[0]


def _later(function: Callable[..., object], calls: list[Callable[[], object]]) -> Callable[..., None]:
    """Make a function of the same signature that only keeps what it is called with."""

    @functools.wraps(function)
    def keep(**arguments: Any) -> None:
        calls.append(functools.partial(function, **arguments))

    return keep


def _unread() -> None:
    """Stand for a command that was not invoked."""


def _options() -> Callable[..., None]:
    import typer

    def truestep(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
    ) -> None:
        pass

    # Typer evaluates annotations where the function was made; these are names it can see.
    truestep.__annotations__ = {"version": bool, "return": None}
    return truestep


def _version(wanted: bool) -> None:
    if wanted:
        import typer

        from truestep import __version__

        print(f"truestep {__version__}")
        raise typer.Exit
