"""Lines of a user's file with the kinds of their tokens, and excerpts with marked lines."""

from __future__ import annotations

import functools
import io
import keyword
import token
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise

from truestep import source
from truestep.events import Site
from truestep.findings import Mark

_AROUND = 2
"""Lines shown before and after a marked line."""
_GAP = 6
"""Most lines between two marked ones that are shown; more are folded."""
_LONGEST = 400
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one kind on a line."""

    text: str
    kind: str = ""
    """"keyword", "string", "number", "comment", "name" of a definition, or empty."""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A label below a marked line."""

    text: str
    primary: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an excerpt; number 0 stands for lines that are not shown."""

    number: int
    pieces: tuple[Piece, ...] = ()
    labels: tuple[Label, ...] = ()
    primary: bool = False
    """Whether the finding is at this line."""
    skipped: int = 0
    """Number of lines that are not shown."""
    row: int = 0
    """Row in the grid of the excerpt, from 1; labels take the row below."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from a related line to the line of the finding, in rows of the grid."""

    first: int
    last: int
    down: bool
    """Whether it points to the lower line."""
    depth: int
    """Distance from the code, for several arrows beside each other: 0 is the nearest."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of one file."""

    path: str
    place: str
    """Path and line for people."""
    lines: tuple[Line, ...]
    arrows: tuple[Arrow, ...] = ()
    missing: bool = False
    """Whether the file, or a marked line of it, cannot be read."""


def excerpts(primary: Mark, related: Iterable[Mark]) -> list[Excerpt]:
    """Return the marked lines, one excerpt per file, that of the finding first."""
    files: dict[str, list[tuple[Site, str, bool]]] = {}
    for mark in (primary, *related):
        if mark.site is not None:
            files.setdefault(mark.site.path, []).append((mark.site, mark.label, mark is primary))
    return [_excerpt(path, marks) for path, marks in files.items()]


def _excerpt(path: str, marks: list[tuple[Site, str, bool]]) -> Excerpt:
    file = source.read(path)
    place = source.posix(str(source.span(marks[0][0])))
    chosen = sorted({site.line for site, _, _ in marks})
    if any(not (file.line(number) or "").strip() for number in chosen):
        labels = tuple(Label(f"line {site.line}: {label}", main) for site, label, main in marks)
        return Excerpt(path, place, (Line(0, labels=labels),), missing=True)
    lines: list[Line] = []
    rows: dict[int, int] = {}
    row = 1
    previous = 0
    for number in _shown(chosen, len(file.lines)):
        if previous and number > previous + 1:
            lines.append(Line(0, skipped=number - previous - 1, row=row))
            row += 1
        here = [mark for mark in marks if mark[0].line == number]
        labels = tuple(Label(label, main) for _, label, main in here if label)
        pieces = marked(path, number, [mark[0] for mark in here])
        lines.append(Line(number, pieces, labels, any(main for _, _, main in here), row=row))
        rows[number] = row
        row += 2 if labels else 1
        previous = number
    primary = next((site.line for site, _, main in marks if main), None)
    others = [number for number in chosen if number != primary] if primary is not None else []
    arrows = []
    for depth, number in enumerate(sorted(others, key=lambda one: abs(one - (primary or 0)))):
        assert primary is not None
        first, last = sorted((rows[number], rows[primary]))
        arrows.append(Arrow(first, last, down=primary > number, depth=depth))
    return Excerpt(path, place, tuple(lines), tuple(arrows[:3]))


def _shown(chosen: list[int], count: int) -> list[int]:
    """Return the numbers of the lines to show: those chosen, with some around them."""
    shown: set[int] = set()
    for number in chosen:
        shown.update(range(max(1, number - _AROUND), min(count, number + _AROUND) + 1))
    for first, second in pairwise(chosen):
        if second - first <= _GAP + 2 * _AROUND:
            shown.update(range(first, second))
    return sorted(shown)


def marked(path: str, number: int, sites: Iterable[Site] = ()) -> tuple[Piece, ...]:
    """Return a line of a file in pieces, with the expressions of the sites on it marked."""
    file = source.read(path)
    text = (file.line(number) or "")[:_LONGEST]
    under = [False] * len(text)
    for site in sites:
        begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
        first = file.character(number, site.column)
        last = file.character(number, site.end_column) if site.end_line in (-1, number) else end
        if not begin <= first < end:
            first, last = begin, end
        for position in range(first, min(last if last > first else end, end)):
            under[position] = True
    return _pieces(file.lines, number, under)


def colored(lines: tuple[str, ...], number: int) -> tuple[Piece, ...]:
    """Return a line of a text in pieces by the kind of its tokens; lines count from 1."""
    return _pieces(lines, number, [False] * len(lines[number - 1][:_LONGEST]))


def _pieces(lines: tuple[str, ...], number: int, under: list[bool]) -> tuple[Piece, ...]:
    """Return a line in pieces, as long as the list of the characters that are marked."""
    text, kinds = lines[number - 1][: len(under)] if under else "", _kinds(lines).get(number, {})
    cells = [(kinds.get(position, ""), under[position]) for position in range(len(text))]
    pieces = []
    for (kind, mark), group in groupby(range(len(text)), key=lambda position: cells[position]):
        piece = "".join(text[position] for position in group).expandtabs(4)
        shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in piece)
        pieces.append(Piece(shown, kind, mark))
    return tuple(pieces)


@functools.lru_cache(maxsize=32)
def _kinds(lines: tuple[str, ...]) -> dict[int, dict[int, str]]:
    """Return for each line the kind of its characters, as far as the file is Python."""
    found: dict[int, dict[int, str]] = {}
    previous = ""
    try:
        for one in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            kind = _kind(one, previous)
            previous = one.string if one.type == token.NAME else ""
            if not kind:
                continue
            for number in range(one.start[0], one.end[0] + 1):
                first = one.start[1] if number == one.start[0] else 0
                last = one.end[1] if number == one.end[0] else len(lines[number - 1])
                found.setdefault(number, {}).update(dict.fromkeys(range(first, last), kind))
    except (tokenize.TokenError, SyntaxError, IndexError):
        pass
    return found


def _kind(one: tokenize.TokenInfo, previous: str) -> str:
    if one.type == tokenize.COMMENT:
        return "comment"
    if one.type == token.STRING or token.tok_name[one.type].startswith("FSTRING"):
        return "string"
    if one.type == token.NUMBER:
        return "number"
    if one.type == token.NAME:
        if keyword.iskeyword(one.string):
            return "keyword"
        return "name" if previous in ("def", "class") else ""
    return ""
