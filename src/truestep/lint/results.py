"""Results of `truestep lint`: findings of files, and files that could not be checked."""

from __future__ import annotations

from dataclasses import dataclass

from truestep.findings import Confidence, Finding, shown


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, or a part of one, that could not be checked."""

    path: str
    message: str
    """The reason: lower case, no full stop."""
    line: int = 0
    """Line of the reason; 0 if it concerns the whole file."""
    fails: bool = True
    """Whether the exit code says so; False for mistakes in comments."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class FileResults:
    """Findings and problems of one file."""

    path: str
    findings: tuple[Finding, ...] = ()
    """Sorted by place; includes suppressed ones, marked as such."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """Findings and problems of all files."""

    files: int = 0
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    in_baseline: int = 0
    """Number of findings that the baseline lists."""
    cleared: tuple[Finding, ...] = ()
    """Findings that a recorded run showed to be harmless."""
    internal_errors: tuple[str, ...] = ()
    """Tracebacks of rules that failed."""

    def shown(self, least: Confidence = Confidence.MEDIUM) -> tuple[Finding, ...]:
        """Return the findings to show: not suppressed, with at least this confidence."""
        return shown(self.findings, least=least)
