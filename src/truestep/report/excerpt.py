"""Source lines with marks under them, in the style of compiler messages, as rows of styled pieces."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from truestep import source
from truestep.events import Site
from truestep.findings import Finding, Mark, PostMortem

Row = tuple[tuple[str, str], ...]
"""Pieces of one line of a report, each with the name of its style."""

_TAB = 4
_LEAST_LABEL = 30
"""Least columns for a label beside its underline; with fewer it goes on the next line."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A source line for display: tabs expanded, cut to the width."""

    text: str
    starts: tuple[int, ...]
    """First cell of each character of the original line, and one more entry for its end."""
    shift: int
    """Number of cells cut off at the left."""

    def cells(self, first: int, last: int) -> tuple[int, int]:
        """Return the displayed cells (begin, end) of the characters ``first`` to ``last`` (exclusive)."""
        whole = cell_len(self.text)
        left = min(max(self.starts[min(first, len(self.starts) - 1)] - self.shift, 0), max(whole - 1, 0))
        right = min(self.starts[min(last, len(self.starts) - 1)] - self.shift, whole)
        return left, max(right, left + 1)


def gutter(finding: Finding | PostMortem) -> int:
    """Return the width of the column of line numbers of a finding."""
    lines = [
        mark.site.line for mark in (finding.primary, *finding.related) if mark.site is not None and _text(mark.site)
    ]
    return max((len(str(line)) for line in lines), default=2)


def rows(finding: Finding | PostMortem, width: int) -> list[Row]:
    """Return the rows with the place of a finding and its marked lines: the primary line first, other files last."""
    margin = gutter(finding)
    groups: dict[str, list[tuple[Site, Mark, str]]] = {}
    for mark in (finding.primary, *finding.related):
        if mark.site is not None:
            style = "primary" if mark is finding.primary else "related"
            groups.setdefault(mark.site.path, []).append((mark.site, mark, style))
    found: list[Row] = []
    for group in groups.values():
        group.sort(key=lambda entry: (entry[2] != "primary", entry[0].line, entry[0].column))
        lines: dict[int, list[tuple[Site, Mark, str]]] = {}
        for entry in group:
            lines.setdefault(entry[0].line, []).append(entry)
        for position, marked in enumerate(lines.values()):
            readable = _text(marked[0][0]) is not None
            if position == 0 or not readable:
                found.append(_place(marked[0][0], margin, ":::" if found else "-->"))
            if readable:
                found.extend(_marked(marked, margin, width))
            else:
                found.extend(row for _, mark, _ in marked for row in note("note", mark.label, margin, width))
    for mark in (finding.primary, *finding.related):
        if mark.site is None:
            found.extend(note("note", mark.label, margin, width))
    return found


def note(key: str, text: str, margin: int, width: int) -> list[Row]:
    """Return the rows of ``= key: text``. The first line of the text is wrapped; further lines are kept as they are."""
    head = f"{' ' * margin} = "
    indent = " " * (len(head) + len(key) + 2)
    first, *rest = text.split("\n")
    wrapped = wrap(first, width - len(indent))
    found: list[Row] = [((head, "gutter"), (f"{key}: ", "key"), *_prose(wrapped[0] if wrapped else ""))]
    found.extend(((indent, ""), *_prose(line)) for line in wrapped[1:])
    found.extend(((indent, ""), (line, "code")) for line in rest)
    return found


def wrap(text: str, width: int, *, hang: int = 0) -> list[str]:
    """Wrap a text into lines; a name in backticks is never split.

    Args:
        hang: indent of the lines after the first, in columns.

    >>> wrap("call `a b` now", 8)
    ['call', '`a b`', 'now']
    """
    lines: list[str] = []
    for word in _words(text):
        room = width - hang if len(lines) > 1 else width
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in text.split():
        if words and words[-1].count("`") % 2:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _prose(text: str) -> list[tuple[str, str]]:
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return [(text, "")]
    return [
        (f"`{piece}`" if odd % 2 else piece, "name" if odd % 2 else "") for odd, piece in enumerate(pieces) if piece
    ]


def _text(site: Site) -> str | None:
    """Return the source line of a site; None if the file or the line is missing or empty."""
    text = source.read(site.path).line(site.line)
    return text if text is not None and text.strip() else None


def _place(site: Site, margin: int, arrow: str) -> Row:
    return ((f"{' ' * margin}{arrow} ", "gutter"), (source.posix(str(source.span(site))), "place"))


def _marked(marked: list[tuple[Site, Mark, str]], margin: int, width: int) -> list[Row]:
    text = _text(marked[0][0]) or ""
    room = width - margin - 3
    spans = [(*_span(site, text), mark.label, style) for site, mark, style in marked]
    shown = _fit(text, spans[0][0], spans[0][1], room)
    found: list[Row] = [((f"{marked[0][0].line:>{margin}} | ", "gutter"), (shown.text, "code"))]
    for first, last, label, style in spans:
        left, right = shown.cells(first, last)
        found.extend(((f"{' ' * margin} | ", "gutter"), *row) for row in _underline(left, right, label, style, room))
    return found


def _span(site: Site, text: str) -> tuple[int, int]:
    """Return the first character of a site on its line, and the one after its last."""
    file = source.read(site.path)
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    first = file.character(site.line, site.column)
    if not 0 <= first < end:
        return begin, end
    if site.end_line > site.line or site.end_column < 0:
        return first, end
    last = file.character(site.line, site.end_column)
    return first, min(last, end) if last > first else end


def _underline(left: int, right: int, label: str, style: str, room: int) -> list[Row]:
    line = (" " * left, ""), (("^" if style == "primary" else "-") * (right - left), style)
    beside = room - right - 1
    longest = max(map(cell_len, _words(label)), default=0)
    if cell_len(label) <= beside or beside >= max(_LEAST_LABEL, longest):
        wrapped = wrap(label, beside) or [""]
        rest = [((" " * (right + 1), ""), (more, style)) for more in wrapped[1:]]
        return [(*line, (f" {wrapped[0]}".rstrip(), style)), *rest]
    indent = max(0, min(left, room - max(2 * _LEAST_LABEL, longest)))
    return [line, *(((" " * indent, ""), (more, style)) for more in wrap(label, room - indent))]


def _fit(text: str, first: int, last: int, room: int) -> _Line:
    """Expand tabs and cut a line to `room` cells, keeping the characters from ``first`` to ``last`` visible."""
    shown: list[str] = []
    starts = [0]
    for character in text.rstrip():
        piece = " " * (_TAB - starts[-1] % _TAB) if character == "\t" else character
        piece = piece if piece.isprintable() else "\N{REPLACEMENT CHARACTER}"
        shown.append(piece)
        starts.append(starts[-1] + cell_len(piece))
    if starts[-1] <= room:
        return _Line("".join(shown), tuple(starts), 0)
    begin = 0
    if starts[min(last, len(shown))] > room - 1:
        # Keep the end of the marked part visible, and as much of its beginning as fits.
        target = min(starts[first], max(starts[min(last, len(shown))] - room + 8, 0))
        target = max(target, starts[first] - room // 3) if starts[first] > target else target
        begin = next(i for i, start in enumerate(starts) if start >= target)
    left = 1 if begin else 0
    end = begin
    while end < len(shown) and starts[end + 1] - starts[begin] + left + 1 <= room:
        end += 1
    if end == len(shown) - 1 and starts[-1] - starts[begin] + left <= room:
        end = len(shown)
    cut = "".join(shown[begin:end])
    tail = "…" if end < len(shown) else ""
    return _Line(f"{'…' if begin else ''}{cut}{tail}", tuple(starts), starts[begin] - left)
