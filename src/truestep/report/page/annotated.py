"""The annotated loop: the source of the user with the actions of each line in the run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from truestep import source
from truestep.findings import Summary
from truestep.report.page.code import Piece, marked
from truestep.report.page.duties import DUTIES, Duty
from truestep.report.page.line_times import LineTime, Times
from truestep.report.page.lines import Did, Place, done

_MOST_FILES = 8
_FOLD = 8
"""Lines without a note in a row that are folded, if there are more."""
_CONTEXT = 2
_MOST_LINES = 3000
"""Lines of a file that are put on the page."""


@dataclass(frozen=True, slots=True)
class Note:
    """An operation of a line, and its facts in the run."""

    operation: str
    texts: tuple[str, ...]
    duty: Duty


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file."""

    number: int
    indent: int
    """Number of spaces before the code."""
    pieces: tuple[Piece, ...]
    """The code, without these spaces."""
    notes: tuple[Note, ...] = ()
    findings: tuple[str, ...] = ()
    """Rules with a finding at this line."""
    causes: tuple[str, ...] = ()
    """Rules with a finding that names this line as related."""
    time: LineTime | None = None
    """Its share of a step, if it was measured."""

    @property
    def busy(self) -> bool:
        """True if there is something to say about the line."""
        return bool(self.notes or self.findings or self.causes or self.time)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines in a row, folded if no line of them took part."""

    lines: tuple[SourceLine, ...]
    folded: bool


@dataclass(frozen=True, slots=True)
class AnnotatedFile:
    """A file of the user."""

    path: str
    """As the report shows it."""
    at: str
    """Path of the sites in it."""
    stretches: tuple[Stretch, ...]
    state: str = ""
    """Why the lines may be others than those that ran: "missing" or "changed"; else empty."""
    facts: tuple[tuple[int, Note], ...] = ()
    """For a file that is missing: notes by line."""
    notes: int = 0
    """Number of lines with a note, or with a time if there are none."""


def annotated(summary: Summary, times: Times | None = None) -> list[AnnotatedFile]:
    """Return the files that took part: the script first, then those with most notes.

    Args:
        summary: the run.
        times: times by line of a profile of the script; their paths are real paths.
    """
    places = done(summary)
    found, causes = _findings(summary)
    paths: dict[str, int] = {}
    for path, _ in (*places, *found):
        paths[path] = paths.get(path, 0) + 1
    script = os.path.realpath(summary.script)
    order = sorted(paths, key=lambda path: (os.path.realpath(path) != script, -paths[path]))
    read_at = summary.timeline.read_at if summary.timeline is not None else 0.0
    return [_file(path, places, found, causes, read_at, times or {}) for path in order[:_MOST_FILES]]


def timed(times: Times) -> list[AnnotatedFile]:
    """Return the files of a profile, that with most time first, with nothing but the times."""
    spent: dict[str, float] = {}
    for (path, _), one in times.items():
        spent[path] = spent.get(path, 0.0) + one.ms
    order = sorted(spent, key=lambda path: -spent[path])
    return [_file(path, {}, {}, {}, 0.0, times) for path in order[:_MOST_FILES]]


def state_of(path: str, read_at: float) -> str:
    """Return "missing" for a file that cannot be read, "changed" for one written after this time, or ""."""
    if not source.read(path).lines:
        return "missing"
    try:
        return "changed" if read_at and os.stat(path).st_mtime > read_at else ""
    except OSError:
        return ""


def notes_of(dids: list[Did]) -> tuple[Note, ...]:
    """Return one note per operation, in the order of a loop."""
    texts: dict[str, list[str]] = {}
    for did in dids:
        texts.setdefault(did.operation, []).append(did.text)
    return tuple(Note(name, tuple(dict.fromkeys(texts[name])), duty) for name, duty in DUTIES.items() if name in texts)


def _findings(summary: Summary) -> tuple[dict[Place, list[str]], dict[Place, list[str]]]:
    found: dict[Place, list[str]] = {}
    causes: dict[Place, list[str]] = {}
    for finding in summary.shown():
        marks = [(finding.primary, found), *((mark, causes) for mark in finding.related)]
        for mark, into in marks:
            if mark.site is not None:
                rules = into.setdefault((mark.site.path, mark.site.line), [])
                if finding.rule not in rules:
                    rules.append(finding.rule)
    return found, causes


def _file(
    path: str,
    places: dict[Place, list[Did]],
    found: dict[Place, list[str]],
    causes: dict[Place, list[str]],
    read_at: float,
    times: Times,
) -> AnnotatedFile:
    real = os.path.realpath(path)
    shown = source.posix(source.displayed(path))
    notes = {line: notes_of(dids) for (where, line), dids in sorted(places.items()) if where == path}
    state = state_of(path, read_at)
    if state == "missing":
        facts = tuple((line, note) for line, some in notes.items() for note in some)
        return AnnotatedFile(shown, path, (), state, facts, len(notes))
    lines = [
        SourceLine(
            number,
            *_indented(marked(path, number)),
            notes.get(number, ()),
            tuple(found.get((path, number), ())),
            tuple(causes.get((path, number), ())),
            times.get((real, number)),
        )
        for number in range(1, min(len(source.read(path).lines), _MOST_LINES) + 1)
    ]
    took_part = len(notes) or sum(line.busy for line in lines)
    return AnnotatedFile(shown, path, tuple(_stretches(lines)), state, (), took_part)


def _indented(pieces: tuple[Piece, ...]) -> tuple[int, tuple[Piece, ...]]:
    """Return the indent of a line, and its pieces without it: a long line is continued below its own indent."""
    if not pieces:
        return 0, ()
    first = pieces[0]
    code = first.text.lstrip(" ")
    rest = (Piece(code, first.kind, first.marked),) if code else ()
    return len(first.text) - len(code), rest + pieces[1:]


def _stretches(lines: list[SourceLine]) -> list[Stretch]:
    busy = [line.busy for line in lines]
    near = [any(busy[max(0, place - _CONTEXT) : place + _CONTEXT + 1]) for place in range(len(lines))]
    stretches: list[Stretch] = []
    begin = 0
    for place in range(1, len(lines) + 1):
        if place == len(lines) or near[place] != near[begin]:
            folded = not near[begin] and place - begin > _FOLD
            part = tuple(lines[begin:place])
            if stretches and not folded and not stretches[-1].folded:
                part = stretches.pop().lines + part
            stretches.append(Stretch(part, folded))
            begin = place
    return stretches
