"""The supervision of a program under ``truestep run``: start of the session, announcements, report."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from truestep.config import Options
from truestep.supervision.launching.uncaught import described
from truestep.supervision.ranks import Ranks

if TYPE_CHECKING:
    from truestep.events import Event
    from truestep.findings import Finding, Summary
    from truestep.supervision.session import Session


class Beside(Protocol):
    """Something that runs beside the program and its session, such as a status line."""

    def begin(self, session: Session) -> None:
        """Begin, when the session has started."""

    def end(self) -> None:
        """End, before the session ends and the report is written. Called more than once."""

    def forked(self) -> None:
        """End in a forked child."""


class WatchedProgram:
    """A session that starts when the program imports torch, and is reported on when the program ends.

    Args:
        options: options of the command.
        script: the program as typed.
        ranks: rank of this process in a run of several processes; None in a run of one.
        stream: standard error, as it was before the program could replace it.
        write: writes the report as `truestep.report.write` does.
        verdict: returns the line for a run without observations.
        also: called with every event, see `Session`.
        beside: begins after the session, and ends before it.
    """

    def __init__(
        self,
        options: Options,
        script: str,
        ranks: Ranks | None,
        stream: TextIO | None,
        *,
        write: Callable[[Summary, Options, TextIO], str],
        verdict: Callable[[Summary], str],
        also: Callable[[Event], object] | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._beside = beside
        self._options = options
        self._script = script
        self._ranks = ranks
        self._stream = stream
        self._write, self._verdict, self._also = write, verdict, also
        self._here = os.getcwd()
        self._session: Session | None = None
        self._failure = ""
        self._error = ""
        self._announced = False

    def torch_imported(self) -> None:
        """Start the session. If that fails, the report says so and the program goes on."""
        try:
            from truestep.supervision.session import Session

            leading = self._ranks is None or self._ranks.rank == 0
            announce = self._announce if leading else None
            self._session = Session(self._options, script=self._script, announce=announce, also=self._also)
            self._session.start()
        except Exception:
            import traceback

            self._failure = traceback.format_exc()
            return
        if self._beside is not None:
            try:
                self._beside.begin(self._session)
            except Exception as error:
                self._beside.end()
                self._say(f"no status line: {described(error)}")

    def forked(self) -> None:
        if self._session is not None:
            self._session.disable()
        if self._beside is not None:
            self._beside.forked()

    def crashed(self, error: BaseException) -> None:
        """Examine the exception that ended the program, before its frames are freed."""
        self._error = described(error)
        if self._session is not None and not self._failure:
            self._session.examine(error)

    def ended(self, how: str) -> int | None:
        """Write the report; return the exit code for a program that succeeded, or None to keep its exit code."""
        if self._beside is not None:
            with contextlib.suppress(Exception):
                self._beside.end()
        summary = self._summary(how)
        if self._ranks is not None:
            if self._ranks.rank:
                self._ranks.leave(summary)
                return None  # if one rank exited with an error, torchrun would kill rank 0 before its report
            summary = self._ranks.gather(summary)
        watched = bool(summary.torch or summary.verdicts or summary.internal_errors)
        if watched or self._options.output is not None or self._options.report is not None:
            with contextlib.suppress(Exception):
                if how not in ("interrupted", "exited"):
                    sys.stdout.flush()
            with _folder(self._here), _open(self._stream) as stream:
                if self._options.format == "text" and stream.isatty():
                    stream.write("\n")  # separates the report from the script's output
                wrote = self._write(summary, self._options, stream)
            if wrote and not self._options.quiet:
                self._say(wrote)
        if not watched and not self._options.quiet:
            self._say(self._verdict(summary))
        return 1 if _fails(summary.shown(), self._options.fail_on) else None

    def _summary(self, how: str) -> Summary:
        from truestep.findings import Coverage, Summary

        errors = (self._failure,) if self._failure else ()
        if self._session is None or self._failure:
            coverage = Coverage(called=False, backward=False, error=self._error)
            return Summary(self._script, how, steps=0, internal_errors=errors, coverage=coverage)
        return self._session.stop(how)

    def _announce(self, finding: Finding) -> None:
        """Print the first error of high confidence at once, in one line, so that the user can stop the run."""
        machine = self._options.format != "text" and self._options.output is None
        sure = finding.severity == "error" and finding.confidence == "high" and not finding.suppressed
        if self._announced or machine or not sure:
            return
        self._announced = True
        site = finding.primary.site
        place = ""
        if site is not None:
            from truestep.source import displayed

            place = f" {displayed(site.path, base=Path(self._here))}:{site.line}"
        self._say(f"error[{finding.rule}]{place}: {finding.message}")

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError), _open(self._stream) as stream:
            stream.write(f"truestep: {text}\n")
            stream.flush()


def _open(stream: TextIO | None) -> contextlib.AbstractContextManager[TextIO]:
    """Return the error stream, reopened if the program has closed it."""
    if stream is None or stream.closed:
        return open(2, "w", encoding="utf-8", errors="replace", closefd=False)
    return contextlib.nullcontext(stream)


@contextlib.contextmanager
def _folder(place: str) -> Iterator[None]:
    """Change to the folder that the program was started in: reports show paths relative to it."""
    try:
        here = contextlib.chdir(place)
        here.__enter__()
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            here.__exit__(None, None, None)


def _fails(findings: Iterable[Finding], level: str) -> bool:
    grave = {"never": (), "error": ("error",), "warning": ("error", "warning")}[level]
    return any(finding.severity in grave for finding in findings)
