"""The report as a fragment of HTML for a notebook: a card per finding with its lines, the ledger, the counts.

Colours follow the theme of JupyterLab where its variables are defined, and the system otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from truestep.findings import Summary
from truestep.report import closing
from truestep.report.page.code import Excerpt, Line
from truestep.report.page.findings import Card, cards, post_mortem

_STYLE = Path(__file__).with_name("card.css")
_RULES_PAGE = "truestep explain"


def html(summary: Summary, *, running: bool = False) -> str:
    """Return the report on a run as HTML.

    Args:
        summary: the run.
        running: whether it goes on.
    """
    return "\n".join(_parts(summary, running))


def _parts(summary: Summary, running: bool) -> Iterator[str]:
    yield f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
    yield '<div class="truestep-report" role="group" aria-label="report of truestep">'
    headline, _, rest = closing.headline(summary).partition(", ")
    died = post_mortem(summary)
    tone = "bad" if closing.counts(summary)["failures"] or died is not None else "good" if summary.steps else "limited"
    state = " so far" if running else ""
    yield f'<p class="headline {tone}"><b>{_prose(headline)}{state}</b></p>'
    for one in ([died] if died is not None else []) + cards(summary):
        yield from _card(one)
    if summary.ledger:
        yield "<details><summary>facts of the run</summary><table>"
        for line in summary.ledger:
            mark = ' class="hot"' if line.rules else ""
            yield f'<tr{mark}><th scope="row">{escape(line.account)}</th><td>{_prose(line.text)}</td></tr>'
        yield "</table></details>"
    for note in ([rest] if rest else []) + closing.notes(summary):
        yield f'<p class="quiet">{_prose(note)}</p>'
    yield "</div>"


def _card(one: Card) -> Iterator[str]:
    yield f'<div class="card {escape(one.kind)}">'
    yield f'<p><b class="kind">{escape(one.kind)}[{escape(one.rule)}]</b></p>'
    yield f'<p class="message">{_prose(one.message)}</p>'
    for excerpt in one.excerpts:
        yield from _excerpt(excerpt)
    for note in one.notes:
        yield f'<p class="quiet">{_prose(note)}</p>'
    if one.help:
        added = "".join(f"\n{escape(line)}" for line in one.added)
        yield f"<p><b>Fix</b> {_prose(one.help)}</p>" + (f"<pre>{added}</pre>" if added else "")
    facts = "".join(f"<dt>{escape(key)}</dt><dd>{_prose(text)}</dd>" for key, text in one.facts)
    yield f"<dl>{facts}</dl>"
    for other in one.consequences:
        yield f'<p class="quiet">explains {escape(other.rule)} at {escape(other.place)}</p>'
    if one.kind != "post-mortem":
        yield f'<p class="quiet">more: <code>{_RULES_PAGE} {escape(one.rule)}</code></p>'
    yield "</div>"


def _excerpt(excerpt: Excerpt) -> Iterator[str]:
    missing = " <i>cannot be read here</i>" if excerpt.missing else ""
    yield f'<p class="quiet place">{escape(excerpt.place)}{missing}</p>'
    rows = "".join(_row(line) for line in excerpt.lines)
    yield f'<pre tabindex="0">{rows}</pre>'


def _row(line: Line) -> str:
    if line.skipped:
        return '<span class="num">   ⋮</span>\n'
    tone = "hot" if line.primary else "warm" if line.labels else ""
    code = "".join(
        f'<span class="{piece.kind}{" mark" if piece.marked else ""}">{escape(piece.text)}</span>'
        for piece in line.pieces
    )
    row = (
        f'<span class="num {tone}">{line.number:4} </span><span class="code {tone}">{code}</span>\n'
        if line.number
        else ""
    )
    text = "".join(piece.text for piece in line.pieces)
    indent = " " * (5 + len(text) - len(text.lstrip()))
    for label in line.labels:
        row += f'{indent}<span class="label {"hot" if label.primary else "warm"}">{escape(label.text)}</span>\n'
    return row


def _prose(text: str) -> str:
    """Return a text with names in backticks as code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{escape(piece)}</code>" if odd % 2 else escape(piece) for odd, piece in enumerate(pieces))
