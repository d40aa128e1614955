"""``truestep run``: run a program under supervision, otherwise as ``python`` does.

This module imports neither torch nor numpy: the program's first lines may set environment variables that they read.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from truestep.cli.shell.fix_options import ShowFixes, Write, WriteUnsafe
from truestep.cli.shell.rule_options import Ignore, Select
from truestep.config import Options, load_options
from truestep.errors import TorchMissing, UnwritableFolder, UsageError
from truestep.supervision.launching.launch import Target, launch
from truestep.supervision.launching.watched_program import Beside, WatchedProgram
from truestep.supervision.ranks import Ranks

if TYPE_CHECKING:
    from truestep.events import Event
    from truestep.findings import Summary


def run(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="Path of the script; with -m, a module name.", show_default=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    select: Select = None,
    ignore: Ignore = None,
    fail_on: Annotated[
        Literal["never", "error", "warning"] | None,
        typer.Option(
            help="Exit with 1 if the script succeeds but has findings of this severity or above.", show_default="never"
        ),
    ] = None,
    stop_on: Annotated[
        Literal["never", "error"] | None,
        typer.Option(help="Stop the script at the first error of high confidence.", show_default="never"),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop the script after this many optimizer steps.")] = None,
    active: Annotated[
        bool,
        typer.Option("--active/--passive", help="Call small copies of the model and the data as checks, or not."),
    ] = True,
    budget: Annotated[
        str | None, typer.Option(help="Largest share of the run time that supervision may cost.", show_default="1%")
    ] = None,
    format: Annotated[
        Literal["text", "json", "sarif", "github"] | None,
        typer.Option(help="Format of the report.", show_default="text"),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file, not to standard error.")] = None,
    record: Annotated[Path | None, typer.Option(help="Write a record for `truestep replay` to this folder.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page to this file as well.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Show a status line on the last row of the terminal.")] = False,
    to_tracker: Annotated[
        bool, typer.Option("--to-tracker", help="Write findings and curves to the script's TensorBoard or MLflow too.")
    ] = False,
    fix: ShowFixes = False,
    write: Write = False,
    unsafe_fixes: WriteUnsafe = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report only if there are findings or errors.")] = False,
) -> None:
    """Run a script or module and report its silent training failures.

    The script behaves as under python: same results, same output, same exit code. The report is written to standard
    error when the script ends, also when it crashes or is interrupted.
    """
    options = load_options(
        Path.cwd() if module else Path(script).absolute().parent,
        select=select,
        ignore=ignore,
        fail_on=fail_on,
        stop_on=stop_on,
        steps=steps,
        active=active,
        budget=budget,
        format=format,
        output=output and output.absolute(),
        record=record and record.absolute(),
        report=report and report.absolute(),
        to_tracker=to_tracker,
        quiet=quiet or None,
    )
    beside = _status_line(options) if live else None
    reported = _with_fixes(_to_trackers() if to_tracker else _write, fix, edit=write, unsafe=unsafe_fixes)
    supervise(Target(script, tuple(arguments or ()), module), options, write=reported, beside=beside)


def _status_line(options: Options) -> Beside | None:
    """Return the status line, or None with one line about the reason."""
    from truestep.cli.live.status_line import StatusLine, refusal

    reason = refusal(os.environ, int(os.environ.get("RANK", "0")))
    if reason:
        if reason != "rank 0 has it":
            sys.stderr.write(f"truestep: no status line: {reason}\n")
        return None
    return StatusLine(options.steps)


def _to_trackers() -> Callable[[Summary, Options, TextIO], str]:
    """Return a function that writes the report, then to the trackers of the script, which are followed from now on."""
    from truestep.trackers.of_script import ScriptTrackers

    trackers = ScriptTrackers()
    trackers.follow()
    return lambda *report: "; ".join(filter(None, [_write(*report), trackers.write(report[0])]))


def _with_fixes(
    reported: Callable[[Summary, Options, TextIO], str], asked: bool, *, edit: bool, unsafe: bool
) -> Callable[[Summary, Options, TextIO], str]:
    """Return a function that writes the report, then the fixes of its findings, and makes them where that is asked.

    Raises:
        UsageError: an option about fixes lacks the one before it.
    """
    if (edit and not asked) or (unsafe and not edit):
        raise UsageError(
            f"{'--write' if edit else '--unsafe-fixes'} has no effect alone",
            expected="expected --fix, which shows fixes, before --write, which makes them",
            remedy="write `--fix --write`" if edit else "write `--fix --write --unsafe-fixes`",
        )
    if not asked:
        return reported
    begun = time.time()

    def write(summary: Summary, options: Options, stream: TextIO) -> str:
        from truestep.report.fixes import offered

        wrote = reported(summary, options, stream)
        return "; ".join(filter(None, [wrote, offered(summary.shown(), stream, edit=edit, unsafe=unsafe, begun=begun)]))

    return write


def supervise(
    target: Target,
    options: Options,
    *,
    write: Callable[[Summary, Options, TextIO], str],
    also: Callable[[Event], object] | None = None,
    beside: Beside | None = None,
) -> None:
    """Run a program under supervision, and exit as it does.

    Args:
        target: the program.
        options: options of the supervision.
        write: writes the report as `truestep.report.write` does.
        also: called with every event; once it returns True, the program is stopped at the next backward pass or step.
        beside: runs beside the program, as a status line does.
    """
    check(options)
    ranks = _ranks(options)
    watch = WatchedProgram(
        options, target.name, ranks, sys.stderr, write=write, verdict=_verdict, also=also, beside=beside
    )
    launch(
        target,
        torch_imported=watch.torch_imported,
        ended=watch.ended,
        forked=watch.forked,
        crashed=watch.crashed,
    )


def _write(summary: Summary, options: Options, stream: TextIO) -> str:
    from truestep.report import write

    wrote = [write(summary, options, stream)]
    if options.report is not None:
        from truestep.report.page.write_page import write as write_page

        wrote.append(write_page([summary], options.report))
    return "; ".join(filter(None, wrote))


def _verdict(summary: Summary) -> str:
    from truestep.report.coverage import verdict

    return verdict(summary, 0)


def check(options: Options) -> None:
    """Check the options before the script runs, so that a long run does not end in an error about them.

    Raises:
        UnknownRule: no rule has that name.
        UnwritableFolder: the report or the record cannot be written.
        TorchMissing: torch is not installed.
    """
    if options.select or options.ignore:
        from truestep.rules import rule

        for id in (*options.select, *options.ignore):
            rule(id)
    if options.record is not None:
        _writable(options.record, "the record", "--record DIR")
    if options.output is not None:
        if options.output.is_dir():
            raise _unwritable(options.output, "the report", "it is a folder", "--output FILE")
        _writable(options.output.parent, "the report", "--output FILE")
    if options.report is not None:
        from truestep.report.page.write_page import needs

        needs()
        if options.report.is_dir():
            raise _unwritable(options.report, "the page", "it is a folder", "--report FILE")
        _writable(options.report.parent, "the page", "--report FILE")
    if "torch" not in sys.modules and find_spec("torch") is None:
        raise TorchMissing(
            "torch is not installed for this Python",
            expected=f"expected it beside {sys.executable}",
            remedy="write `uvx --with torch truestep`, or in a project with torch `uv run --with truestep truestep`"
            if "UV" in os.environ  # set by uvx: pip cannot reach its environment
            else "install it with `pip install torch`, or run the truestep of the environment that has it",
        )


def _writable(folder: Path, what: str, flag: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, what, error.strerror or str(error), flag) from None


def _unwritable(place: Path, what: str, reason: str, flag: str) -> UnwritableFolder:
    return UnwritableFolder(
        f"{what} cannot be written to {place}",
        expected=f"expected a folder that can be created and written to, got: {reason}",
        remedy=f"give another one with {flag}",
    )


def _ranks(options: Options) -> Ranks | None:
    ranks = Ranks.here(os.environ, options.record)
    if ranks is not None:
        try:
            ranks.enter()
        except OSError as error:
            raise _unwritable(
                ranks.folder, "the ranks' exchange", error.strerror or str(error), "--record DIR"
            ) from None
    return ranks
