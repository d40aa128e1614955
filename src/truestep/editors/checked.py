"""An open file or notebook with its findings, by the configuration of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from truestep.config import Options, find_configuration, load_options
from truestep.findings import Confidence, Finding
from truestep.lint.checking import check
from truestep.lint.engine import Code, inspecting
from truestep.lint.results import Problem
from truestep.rules import Rule, rule


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of the server's command line, for all files."""

    confidence: Confidence = Confidence.MEDIUM
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    """Ids of rules; None for those of the configuration."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Code with its findings."""

    code: Code | Problem | None = field(repr=False)
    """None if a document has no code of Python."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    errors: tuple[str, ...] = ()
    """Tracebacks of rules that failed."""


def checked(code: Code | Problem | None, choice: Choice) -> Checked:
    """Return code with the findings to show; a file that the configuration excludes has none.

    Raises:
        BadConfiguration: the configuration of the folder is not valid.
        UnknownRule: it names a rule that does not exist.
    """
    if code is None:
        return Checked(code)
    folder = Path(code.path).parent
    found = find_configuration(folder)
    base = found[0].parent if found is not None else folder
    options = load_options(base, select=choice.select, ignore=choice.ignore)
    if _excluded(code.path, base, options):
        return Checked(code)
    results = check([code], _rules(options), None, dict(options.per_file_ignores), base)
    return Checked(code, results.shown(choice.confidence), results.problems, results.internal_errors)


def _rules(options: Options) -> tuple[type[Rule], ...]:
    known = inspecting()
    chosen = [rule(id).id for id in options.select] or list(known)
    ignored = {rule(id).id for id in options.ignore}
    return tuple(known[id] for id in chosen if id in known and id not in ignored)


def _excluded(path: str, base: Path, options: Options) -> bool:
    if not options.exclude or not Path(path).absolute().is_relative_to(base.absolute()):
        return False
    relative = Path(path).absolute().relative_to(base.absolute()).as_posix()
    return GitIgnoreSpec.from_lines(options.exclude).match_file(relative)
