"""The page of an experiment: its answer, charts, tables, and the lines of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truestep.report.page.annotated import AnnotatedFile
from truestep.report.page.pictures.curves import Chart
from truestep.report.page.write_page import fill, store


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table; the first cell is its head."""

    cells: tuple[str, ...]
    bar: float | None = None
    """Length of a bar in the second cell, in per cent; None for no bar."""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    title: str
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    code: str = ""
    of_steps: bool = True
    """Whether the charts are over steps, which may have a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """Everything that the page of an experiment shows."""

    title: str
    command: str
    headline: str
    text: str
    """The report as the terminal shows it."""
    tone: str = "limited"
    """"bad", "warned", "limited" or "good": the colour of the answer."""
    paragraphs: tuple[str, ...] = ()
    tiles: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    files: tuple[AnnotatedFile, ...] = ()


def render_experiment(page: ExperimentPage) -> str:
    """Return the page as HTML.

    Raises:
        PackageMissing: Jinja2 is not installed.
    """
    return fill("experiment.html", page=page, known=frozenset(), reload_s=0.0)


def write_experiment(page: ExperimentPage, file: Path) -> str:
    """Write the page, and return a line for the user with its path.

    Raises:
        PackageMissing: Jinja2 is not installed.
        UnwritableFolder: the file cannot be written.
    """
    return store(render_experiment(page), file)
