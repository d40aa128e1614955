"""``truestep lint``: find silent training failures in the syntax of files. Needs no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from truestep.cli.shell import completion
from truestep.cli.shell.fix_options import Diff, Fix, UnsafeFixes
from truestep.cli.shell.rule_options import LintIgnore, LintSelect
from truestep.config import Options, find_configuration, load_options
from truestep.errors import UnwritableFolder, UsageError
from truestep.findings import Confidence, Finding
from truestep.fixes.files import StandardInput
from truestep.lint import baseline as baselines
from truestep.lint import fixing, watching
from truestep.lint.cache import FOLDER, Cache
from truestep.lint.checking import check
from truestep.lint.discovery import files
from truestep.lint.engine import Code, code_of, inspecting, read_code, show
from truestep.lint.results import Problem, Results
from truestep.lint.texts import render, statistics
from truestep.report import NARROWEST, WIDEST
from truestep.report.color import is_colored
from truestep.report.fixes import Offer
from truestep.rules import Rule, rule

_Record = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Compare with a run: leave out findings that it showed to be harmless.",
        autocompletion=completion.records,
    ),
]
_Watch = Annotated[bool, typer.Option("--watch", help="Check again after each change of a file, until Ctrl-C.")]


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATHS]...", help="Files and folders; - for standard input.", show_default="."),
    ] = None,
    select: LintSelect = None,
    ignore: LintIgnore = None,
    confidence: Annotated[
        Literal["high", "medium", "low"], typer.Option(help="Least confidence of the findings to show.")
    ] = "medium",
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Leave out these files, as .gitignore does.")
    ] = None,
    format: Annotated[
        Literal["text", "json", "sarif", "github"] | None,
        typer.Option(help="Format of the findings.", show_default="text"),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file, not to standard output.")] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Show the number of findings of each rule.")] = False,
    fix: Fix = False,
    unsafe_fixes: UnsafeFixes = False,
    diff: Diff = False,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Leave out the findings that this file lists.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all findings to this file, for --baseline.")
    ] = None,
    record: _Record = None,
    watch: _Watch = False,
    stdin_filename: Annotated[
        str, typer.Option(metavar="PATH", help="Path of standard input in the findings.")
    ] = "<stdin>",
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help=f"Keep findings of files in {FOLDER}.")] = True,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even if there are findings.")] = False,
) -> int:
    """Find silent training failures in Python files and notebooks without running them.

    Exit code 0 if nothing was found, 1 if there are findings or a file could not be checked, 2 for a usage error or an
    error in a rule.
    """
    places = paths or [Path()]
    start = next((path for path in places if str(path) != "-"), Path())
    _exist(places)
    found = find_configuration(start if start.is_dir() else start.parent)
    base = found[0].parent if found is not None else Path.cwd()
    options = load_options(base, select=select, ignore=ignore, format=format, output=output)
    options = replace(options, exclude=(*options.exclude, *(exclude or ())))
    job = _Job(places, options, base, Cache(Path(FOLDER) if cache else None, [one.id for one in _rules(options)]))
    job.stdin_filename, job.record, job.least = stdin_filename, record, Confidence(confidence)
    job.baseline = baseline if write_baseline is None else None
    if watch:
        alone = {"--fix": fix, "--diff": diff, "--write-baseline": write_baseline, "--output": options.output}
        return job.watch(alone, counted=statistics)
    results, stream = job.results(), sys.stdout
    if write_baseline is not None:
        return _accept(results.shown(job.least), write_baseline)
    if diff:
        return job.show_fixes(results, unsafe=unsafe_fixes)
    if fix:
        results, stream = job.fix(results, unsafe=unsafe_fixes)
    _write(results, options, job.least, stream, counted=statistics)
    if results.internal_errors:
        return 2
    failed = bool(results.shown(job.least)) or any(one.fails for one in results.problems)
    return 1 if failed and not exit_zero else 0


@dataclass(slots=True)
class _Job:
    """The files to check, and how."""

    places: list[Path]
    options: Options
    base: Path
    store: Cache
    stdin_filename: str = "<stdin>"
    record: Path | None = None
    baseline: Path | None = None
    least: Confidence = Confidence.MEDIUM
    given: bytes | None = None
    """Standard input, once it was read."""

    def results(self) -> Results:
        """Check all files."""
        if self.given is None and any(str(place) == "-" for place in self.places):
            self.given = sys.stdin.buffer.read()
        rules, ignores = _rules(self.options), dict(self.options.per_file_ignores)
        results = check(self._codes(), rules, self.store, ignores, self.base)
        if self.record is not None:
            results = _with_run(results, self.record)
        if self.baseline is not None:
            shown, listed = baselines.unlisted(results.findings, self.baseline)
            results = replace(results, findings=shown, in_baseline=listed)
        return results

    def _codes(self) -> Iterator[Code | Problem]:
        if self.given is not None:
            code = code_of(self.stdin_filename, self.given)
            if isinstance(code, Code):
                show(code)
            yield code
        for path in files([place for place in self.places if str(place) != "-"], self.options.exclude, self.base):
            yield read_code(path)

    def watch(self, others: Mapping[str, object], *, counted: bool) -> int:
        """Check the files now and after each change, until Ctrl-C.

        Raises:
            UsageError: an option is given that is for one check only, or standard input is to be checked.
            PackageMissing: watchfiles is not installed.
        """
        wrong = next((name for name, value in others.items() if value), None)
        if wrong is None and any(str(place) == "-" for place in self.places):
            wrong = "standard input"
        if wrong is not None:
            raise UsageError(
                f"--watch does not go with {wrong}",
                expected="expected files and folders that are checked again and again",
                remedy=f"leave out --watch, or {wrong}",
            )
        try:
            for _ in watching.rounds(self.places):
                results = self.results()
                if sys.stdout.isatty():
                    sys.stdout.write("\x1b[2J\x1b[H")
                _write(results, self.options, self.least, sys.stdout, counted=counted)
                sys.stdout.flush()
                print("watching for changes; Ctrl-C ends", file=sys.stderr, flush=True)
        except KeyboardInterrupt:  # it came while files were checked; the watch itself ends without an error
            pass
        return 0

    def show_fixes(self, results: Results, *, unsafe: bool) -> int:
        """Show the fixes as a diff; return 1 if there are any."""
        fixed = self._fixed(results, unsafe=unsafe)
        fixing.show(fixed)
        sys.stderr.write(fixing.counted(fixed, "", fixing.hidden(results, unsafe=unsafe, least=self.least)))
        return 1 if fixed else 0

    def fix(self, results: Results, *, unsafe: bool) -> tuple[Results, TextIO]:
        """Make the fixes; return the results after them, and their stream: a fixed input takes standard output."""
        fixed = self._fixed(results, unsafe=unsafe)
        for one in fixed:
            if not isinstance(one.file, StandardInput):
                one.file.write(one.result.new)
            else:
                self.given = one.result.new.encode(one.file.encoding)
        if fixed:
            results = self.results()
        rest = fixing.hidden(results, unsafe=unsafe, least=self.least)
        sys.stderr.write(fixing.counted(fixed, "made ", rest))
        if self.given is None:
            return results, sys.stdout
        sys.stdout.flush()
        sys.stdout.buffer.write(self.given)
        sys.stdout.buffer.flush()
        return results, sys.stderr

    def _fixed(self, results: Results, *, unsafe: bool) -> list[Offer]:
        rules, once = _rules(self.options), self.record is not None or self.baseline is not None
        given = None if self.given is None else StandardInput.of(self.stdin_filename, self.given)
        return fixing.offers(results, rules, self.least, unsafe=unsafe, once=once, given=given)


def _accept(findings: Sequence[Finding], file: Path) -> int:
    """Write a baseline with the findings; return the exit code."""
    print(f"wrote {baselines.write(file, findings)} findings to {file}", file=sys.stderr)
    return 0


def _exist(places: list[Path]) -> None:
    for place in places:
        if str(place) != "-" and not place.exists():
            raise UsageError(
                f"{place} does not exist",
                expected="expected files, folders, or - for standard input",
                remedy="correct the path",
            )


def _rules(options: Options) -> tuple[type[Rule], ...]:
    """Return the chosen rules that read the syntax."""
    known = inspecting()
    chosen = [rule(id).id for id in options.select] or list(known)
    ignored = {rule(id).id for id in options.ignore}
    return tuple(known[id] for id in chosen if id in known and id not in ignored)


def _with_run(results: Results, record: Path) -> Results:
    from truestep.cli.replay import read
    from truestep.lint.recorded import compared, places_of

    summary = read(record, ())
    kept, cleared = compared(results.findings, summary, places_of(record))
    return replace(results, findings=kept, cleared=cleared)


def _write(results: Results, options: Options, least: Confidence, stream: TextIO, *, counted: bool) -> None:
    width, colour = 100, False
    if options.output is None and options.format == "text":
        width, colour = _columns(), is_colored(stream)
    text = statistics(results, least) if counted else render(results, options.format, least, width=width, colour=colour)
    if options.output is None:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, errors="replace").decode(encoding))
        return
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UnwritableFolder(
            f"the findings cannot be written to {options.output}",
            expected=str(error),
            remedy="name another file with --output",
        ) from error


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdigit():
        width = int(given)
    elif sys.stdout.isatty():
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    else:
        width = 100
    return min(max(width, NARROWEST), WIDEST)
