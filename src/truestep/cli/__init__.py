"""The command line: one file per command, imported only when the command is invoked.

Importing this module is cheap, and so is starting: ``truestep run`` must import nothing that the first lines of the
script may configure (such as ``OMP_NUM_THREADS``). Typer only parses the arguments; the command's function is called
after Typer has returned, so a script under ``truestep run`` sees neither Typer's frames nor its exception handling.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from truestep.errors import TrueStepError

__all__ = ["COMMANDS", "Command", "main"]


@dataclass(frozen=True, slots=True)
class Command:
    """The location of a command's function, and its line in the list of commands."""

    target: str
    """ "package.module:function"; the function takes the parsed arguments and returns an exit status or None."""
    help: str
    settings: dict[str, object] = field(default_factory=dict)
    """Context settings of Typer."""

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
    "check": Command(
        "truestep.cli.check:check",
        "Check copies of a script's model and data in its first steps.",
        _SCRIPTS_OWN,
    ),
    "lint": Command("truestep.cli.lint:lint", "Find failures in files without running them."),
    "prove": Command(
        "truestep.cli.prove:prove",
        "Compare a script with and without the remedy of a finding.",
        _SCRIPTS_OWN,
    ),
    "compare": Command(
        "truestep.cli.experimenting.compare:compare",
        "Compare two choices of arguments of a script over several seeds.",
        _SCRIPTS_OWN,
    ),
    "overfit": Command(
        "truestep.cli.overfit:overfit",
        "Test whether a script's model and loop can learn one batch.",
        _SCRIPTS_OWN,
    ),
    "tune": Command(
        "truestep.cli.tune:tune",
        "Measure the gain of each recommended speed-up on a script.",
        _SCRIPTS_OWN,
    ),
    "inspect": Command(
        "truestep.cli.experimenting.inspect:inspect",
        "Show the layers and the losses of one step of a script.",
        _SCRIPTS_OWN,
    ),
    "profile": Command(
        "truestep.cli.profile:profile",
        "Show where the time and the memory of a script's steps go.",
        _SCRIPTS_OWN,
    ),
    "plan": Command(
        "truestep.cli.plan:plan",
        "Compute whether a training fits, and on how many devices.",
        _SCRIPTS_OWN,
    ),
    "verify-resume": Command(
        "truestep.cli.verify_resume:verify_resume",
        "Kill and resume a script, and show the first step that differs.",
        _SCRIPTS_OWN,
    ),
    "repeat": Command(
        "truestep.cli.experimenting.repeat:repeat",
        "Test whether a script is reproducible, and show the first difference.",
        _SCRIPTS_OWN,
    ),
    "export": Command(
        "truestep.cli.serving.export:export",
        "Export a checkpoint to pt2, ONNX, AOTInductor or safetensors, compared with it.",
    ),
    "bench-inference": Command(
        "truestep.cli.serving.bench_inference:bench_inference",
        "Measure the latency of a trained model: eager, compiled, exported, quantised.",
        _SCRIPTS_OWN,
    ),
    "new": Command("truestep.cli.learning.new:new", "Write a training program to start from."),
    "exercise": Command(
        "truestep.cli.learning.exercise:exercise_command",
        "Write an exercise: a script with one failure to find.",
    ),
    "replay": Command("truestep.cli.replay:replay", "Report on a recorded run again."),
    "runs": Command("truestep.cli.runs:runs", "List runs, or compare two."),
    "report": Command("truestep.cli.report:report", "Write a page about a recorded run, or compare several."),
    "explain": Command("truestep.cli.explain:explain", "Show a rule's manual page, or find rules by symptom."),
    "rules": Command("truestep.cli.rules:rules", "List all rules."),
    "mcp": Command("truestep.cli.assisting.mcp:mcp", "Serve these commands to a coding assistant."),
    "lsp": Command("truestep.cli.assisting.lsp:lsp", "Show findings of lint in an editor."),
    "skills": Command("truestep.cli.assisting.skills:skills", "Install skills for coding assistants into a project."),
    "doctor": Command("truestep.cli.doctor:doctor", "Show this machine's setup for training, and how to improve it."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit.

    Args:
        arguments: the arguments after ``truestep``; default is ``sys.argv[1:]``.

    Raises:
        SystemExit: always; with code 2 for arguments or files that cannot be used, 3 for an experiment without a
            result.
    """
    try:
        call = _parse(list(sys.argv[1:] if arguments is None else arguments))
        status = call()
    except TrueStepError as error:
        from truestep.report.error_text import show

        show(error, sys.stderr)
        status = error.exit_code
    sys.exit(status if isinstance(status, int) else 0)


def _parse(arguments: list[str]) -> Callable[[], object]:
    """Return the command's function bound to its arguments, or exit (help, version, usage errors)."""
    import typer

    from truestep.cli.shell import completion

    asked = completion.words(os.environ)
    words = arguments if asked is None else asked
    invoked = next((word for word in words if not word.startswith("-")), "")
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help="Own your PyTorch training loop, prove every step.")(_options())
    calls: list[Callable[[], object]] = []
    for name, command in COMMANDS.items():
        # Commands that are not invoked are listed, but their modules are not imported.
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
    """Return a function of the same signature, and ``--color``, that appends the call to `calls` without making it."""
    from truestep.cli.shell.colors import colored, with_color

    @functools.wraps(function)
    def keep(**arguments: Any) -> None:
        calls.append(functools.partial(colored, function, **arguments))

    keep.__signature__ = with_color(function)  # type: ignore[attr-defined]
    return keep


def _unread() -> None:
    """Placeholder for a command that was not invoked."""


def _options() -> Callable[..., None]:
    import typer

    def truestep(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
    ) -> None:
        pass

    # Typer resolves string annotations in the module's namespace; real types need no lookup.
    truestep.__annotations__ = {"version": bool, "return": None}
    return truestep


def _version(wanted: bool) -> None:
    if wanted:
        import typer

        from truestep import __version__

        print(f"truestep {__version__}")
        raise typer.Exit
