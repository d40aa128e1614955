"""What a user chose: flags of a command over ``[tool.truestep]`` in pyproject.toml or truestep.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Format = Literal["text", "json", "sarif", "github"]
Level = Literal["never", "error", "warning"]


@dataclass(frozen=True, slots=True)
class Options:
    """How to watch a run and report on it."""

    select: tuple[str, ...] = ()
    """Only these rules; empty means all."""
    ignore: tuple[str, ...] = ()
    """Not these rules."""
    fail_on: Level = "never"
    """From which severity on the exit code is 1; "never" keeps the script's own exit code."""
    stop_on: Literal["never", "error"] = "never"
    """"error" ends the script at the first error of high confidence."""
    steps: int | None = None
    """Stop after this many optimizer steps."""
    budget: float = 0.01
    """Share of the run's time that watching may cost before costly reads are given up."""
    format: Format = "text"
    output: Path | None = None
    """Where the report goes; None is the error stream."""
    record: Path | None = None
    """Folder for the record of the run."""
    quiet: bool = False
    """Print the report only when there is something to report."""
