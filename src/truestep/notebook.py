"""The extension for notebooks and IPython: ``%load_ext truestep``.

A cell that begins with ``%%truestep`` runs under supervision, and its report appears below its output. Sessions and
summaries are shown as reports too, and places in cells have the number of the cell. The line ``%%truestep`` becomes a
comment before the cell is compiled: the cell keeps its lines, its last value and its traceback, as if it had no magic.
"""

from __future__ import annotations

import argparse
import linecache
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from truestep import source
from truestep.config import Options
from truestep.errors import UnknownRule
from truestep.findings import LedgerLine, Summary
from truestep.report import card, render
from truestep.rules import rule
from truestep.supervision.launching.first_import import FirstImport
from truestep.supervision.session import Session

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

_MAGIC = "%%truestep"
_WIDTH = 88
_PLACE = re.compile(r"[^\s():]+(?=:\d)")
"""The name of a file before the number of a line."""
_loaded: dict[int, Extension] = {}
"""Extension of each shell, by its id; a shell lives as long as the process."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magic and the views to a shell; IPython calls this for ``%load_ext truestep``."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].install()


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Undo `load_ipython_extension`; IPython calls this for ``%unload_ext truestep``."""
    if id(shell) in _loaded:
        _loaded.pop(id(shell)).remove()


class Report:
    """The report on a cell or a session, as a card in a notebook and as text elsewhere.

    Args:
        summary: the run.
        running: whether it goes on.
    """

    def __init__(self, summary: Summary, *, running: bool = False) -> None:
        self.summary = _named(summary)
        self._running = running

    def __repr__(self) -> str:
        text = render(self.summary, width=_WIDTH).rstrip("\n")
        return f"{text}\n  so far: the session is running" if self._running else text

    def _repr_html_(self) -> str:
        return card.html(self.summary, running=self._running)


class Extension:
    """The parts of the extension in one shell.

    Args:
        shell: the shell of IPython.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._session: Session | None = None
        self._first_import: FirstImport | None = None
        self._inside = False
        """Whether a cell runs now; a magic that is read then is below another one."""

    def install(self) -> None:
        """Add the parts to the shell."""
        shell = self._shell
        shell.input_transformers_cleanup.insert(0, self._without_magic)
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)
        shell.register_magic_function(truestep, "cell")  # type: ignore[arg-type]
        for kind, show in ((Session, of_session), (Summary, Report)):
            self._formatter("text/plain").for_type(
                kind, lambda one, printer, _, show=show: printer.text(repr(show(one)))
            )
            self._formatter("text/html").for_type(kind, lambda one, show=show: show(one)._repr_html_())
        source.LABELS.append(self._cell)

    def remove(self) -> None:
        """Remove them."""
        shell = self._shell
        shell.input_transformers_cleanup.remove(self._without_magic)
        shell.events.unregister("pre_run_cell", self._begin)
        shell.events.unregister("post_run_cell", self._end)
        shell.magics_manager.magics["cell"].pop("truestep", None)
        for kind in (Session, Summary):
            for type in ("text/plain", "text/html"):
                self._formatter(type).pop(kind, None)
        source.LABELS.remove(self._cell)

    def _formatter(self, type: str) -> Any:
        formatter: Any = self._shell.display_formatter
        return formatter.formatters[type]

    def _cell(self, path: str) -> str | None:
        """Return the name of a cell, such as "In[3]"; None for a file."""
        named = self._shell.compile.format_code_name(path)
        return None if named is None else str(named[1])

    # --- a cell with the magic ---------------------------------------------------------------------------------------

    def _without_magic(self, lines: list[str]) -> list[str]:
        """Make a comment of the magic, so that the lines keep their numbers.

        Raises:
            UsageError: of IPython; its arguments are invalid, and the cell does not run.
        """
        first = next((number for number, line in enumerate(lines) if line.strip()), 0)
        if not lines or self._inside or not _is_magic(lines[first]):
            return lines
        _options(lines[first])
        return [*lines[:first], f"# {lines[first]}", *lines[first + 1 :]]

    def _begin(self, info: ExecutionInfo) -> None:
        """Start the session of a cell, or wait for the cell to import torch."""
        from IPython.core.error import UsageError as NotRun

        self._inside = True
        line = next((line for line in (info.raw_cell or "").splitlines() if line.strip()), "")
        if not _is_magic(line):
            return
        try:
            options = _options(line)
        except NotRun:  # it was shown
            return
        self._session = Session(options, script="cell")
        self._first_import = FirstImport("torch", self._session.start)
        self._first_import.install()

    def _end(self, result: ExecutionResult) -> None:
        """End the session of a cell and show its report."""
        from IPython.display import display

        self._inside = False
        session, self._session = self._session, None
        if session is None or self._first_import is None:
            return
        self._first_import.remove()
        error = result.error_in_exec
        if isinstance(error, Exception):
            session.examine(error)
        how = "interrupted" if isinstance(error, KeyboardInterrupt) else "crashed" if error is not None else "finished"
        summary = session.stop(how)
        if result.error_before_exec is None:
            display(Report(summary))  # type: ignore[no-untyped-call]


def of_session(session: Session) -> Report:
    """Return the report on a session, which may be running."""
    if session.how:
        return Report(session.stop())
    verdicts = tuple(session.verdicts.values())
    summary = Summary(session.script, "finished", session.steps, session.findings, verdicts)
    return Report(summary, running=session.is_live)


def _named(summary: Summary) -> Summary:
    """Return a summary that has the names of cells in its ledger, where accounts write the names of files."""
    names = {Path(path).name: source.displayed(path) for path in tuple(linecache.cache)}

    def text(line: LedgerLine) -> str:
        return _PLACE.sub(lambda place: names.get(place[0], place[0]), line.text)

    return replace(summary, ledger=tuple(replace(line, text=text(line)) for line in summary.ledger))


def truestep(line: str, cell: str) -> NoReturn:
    """Run this cell under supervision and show the report below it.

    %%truestep [--select RULES] [--ignore RULES] [--passive]

    RULES are ids separated by commas. --passive leaves out checks on copies of the model and the data.
    """
    from IPython.core.error import UsageError as NotRun

    raise NotRun(f"{_MAGIC} must be the first line of a cell: exchange it with the other magic")


def _is_magic(line: str) -> bool:
    return line.split(maxsplit=1)[:1] == [_MAGIC]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError as NotRun

        raise NotRun(f"{_MAGIC}: {message}; it takes --select RULES, --ignore RULES and --passive")


def _options(line: str) -> Options:
    """Return the options of the magic.

    Raises:
        UsageError: of IPython; an argument is unknown or invalid.
    """
    from IPython.core.error import UsageError as NotRun

    parser = _Parser(prog=_MAGIC, add_help=False, allow_abbrev=False)
    parser.add_argument("--select", action="append", default=[])
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--passive", action="store_true")
    try:
        given = parser.parse_args(shlex.split(line)[1:])
        chosen = {
            name: tuple(id.strip() for text in getattr(given, name) for id in text.split(",") if id.strip())
            for name in ("select", "ignore")
        }
        for id in (*chosen["select"], *chosen["ignore"]):
            rule(id)
    except (UnknownRule, ValueError) as error:
        raise NotRun(f"{_MAGIC}: {error}") from None
    return Options(select=chosen["select"], ignore=chosen["ignore"], active=not given.passive)
