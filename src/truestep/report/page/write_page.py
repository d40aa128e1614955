"""Write the page as one file: template, style, script and all texts, without a link that the browser follows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from truestep import __version__, source
from truestep.errors import PackageMissing, UnwritableFolder
from truestep.findings import Summary
from truestep.report.page.compared import Comparison, compared, names
from truestep.report.page.findings import Manual, manuals
from truestep.report.page.line_times import Times
from truestep.report.page.pictures.alerts import alerts
from truestep.report.page.pictures.asked_schedules import schedule_charts
from truestep.report.page.pictures.curves import Chart, charts
from truestep.report.page.pictures.time_and_memory import pace_charts
from truestep.report.page.run_page import RunPage, run_page

_LINK = re.compile(r"https?://[^\s)>\]]+")


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the page shows."""

    title: str
    runs: tuple[RunPage, ...]
    comparison: Comparison | None
    charts: tuple[Chart, ...]
    alerts: tuple[str, ...]
    manuals: tuple[Manual, ...]


def needs() -> None:
    """Raise an error if the package for pages is not installed.

    Raises:
        PackageMissing: Jinja2 is not installed.
    """
    if find_spec("jinja2") is None:
        raise PackageMissing(
            "a report as a page needs Jinja2, which is not installed",
            remedy="install it with `pip install 'truestep[report]'`",
        )


def page(summaries: Sequence[Summary], times: Times | None = None) -> Page:
    """Return the contents of the page for one run, or for several to compare."""
    several = len(summaries) > 1
    given = names([summary.record for summary in summaries]) if several else [""]
    runs = [run_page(summary, name, times) for summary, name in zip(summaries, given, strict=True)]
    named = dict.fromkeys(card.rule for run in runs for one in run.cards for card in (one, *one.consequences))
    for run in runs:
        notes = [note for file in run.files for part in file.stretches for line in part.lines for note in line.notes]
        named |= dict.fromkeys(rule for note in notes for rule in note.duty.rules)
    scripts = ", ".join(dict.fromkeys(run.script for run in runs))
    pairs = list(zip(given, summaries, strict=True))
    return Page(
        scripts,
        tuple(runs),
        compared(runs) if several else None,
        (*charts(pairs), *schedule_charts(pairs), *pace_charts(pairs)),
        alerts(pairs),
        tuple(manuals(named)),
    )


def render(summaries: Sequence[Summary], *, reload_s: float = 0.0, times: Times | None = None) -> str:
    """Return the page as HTML.

    Args:
        summaries: the runs.
        times: times by line, of a profile of the script.
        reload_s: seconds after which an open page loads its file again; 0 for a page that stays.

    Raises:
        PackageMissing: Jinja2 is not installed.
    """
    shown = page(summaries, times)
    known = {manual.rule for manual in shown.manuals}
    return fill("page.html", page=shown, known=known, reload_s=reload_s)


def fill(template: str, **values: object) -> str:
    """Return a template of this folder with its values, the style and the script.

    Raises:
        PackageMissing: Jinja2 is not installed.
    """
    needs()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    here = files("truestep.report.page")

    def load(name: str) -> str:
        return (here / name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = _prose
    return environment.get_template(template).render(
        version=__version__, style=load("page.css"), script=load("page.js"), **values
    )


def write(summaries: Sequence[Summary], file: Path, *, reload_s: float = 0.0, times: Times | None = None) -> str:
    """Write the page, and return a line for the user with its path.

    Args:
        summaries: the runs.
        file: the page; a page that reloads is replaced as a whole.
        reload_s: seconds after which an open page loads its file again; 0 for a page that stays.
        times: times by line, of a profile of the script.

    Raises:
        PackageMissing: Jinja2 is not installed.
        UnwritableFolder: the file cannot be written.
    """
    return store(render(summaries, reload_s=reload_s, times=times), file, whole=reload_s > 0)


def store(text: str, file: Path, *, whole: bool = False) -> str:
    """Write a page to its file, and return a line for the user with its path.

    Args:
        text: the page.
        file: where to write it.
        whole: True if a reader must never see a part of it.

    Raises:
        UnwritableFolder: the file cannot be written.
    """
    target = file.with_name(f".{file.name}.new") if whole else file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        if target != file:
            target.replace(file)
    except OSError as error:
        raise UnwritableFolder(
            f"the page cannot be written to {file}",
            expected=str(error),
            remedy="name another file",
        ) from error
    return f"wrote the page {source.displayed(str(file))}"


def _prose(text: str) -> Any:
    """Return a text with names in backticks as code, and addresses as links."""
    from markupsafe import Markup, escape

    parts = []
    for odd, piece in enumerate(text.split("`")):
        if odd % 2:
            parts.append(Markup("<code>{}</code>").format(piece))
        else:
            end = 0
            for link in _LINK.finditer(piece):
                parts.append(escape(piece[end : link.start()]))
                parts.append(Markup('<a href="{0}" rel="noreferrer">{0}</a>').format(link[0]))
                end = link.end()
            parts.append(escape(piece[end:]))
    return Markup("").join(parts)
