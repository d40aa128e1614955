"""Sources of the cells in the JSON of a notebook: their places, and a new text that changes nothing else."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_BLANK = " \t\r\n"
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Span:
    """A value of JSON in a text."""

    value: object
    start: int
    end: int


def with_sources(text: str, new: Mapping[int, str]) -> str:
    r"""Return the JSON of a notebook with other sources of some cells; all else is kept, character by character.

    Args:
        text: the JSON.
        new: the sources by the index of the cell.

    Raises:
        ValueError: the text is not a notebook of format 4.

    >>> with_sources('{"cells": [{"source": ["a\\n", "b"]}]}', {0: "a\nc\nb"})
    '{"cells": [{"source": ["a\\n", "c\\n", "b"]}]}'
    """
    parts, done = [], 0
    spans = list(_sources(text))
    for index in sorted(new):
        span = spans[index]
        if span is None:
            raise ValueError(f"cell {index} has no source")
        parts += [text[done : span.start], _written(text, span, new[index])]
        done = span.end
    return "".join((*parts, text[done:]))


def _sources(text: str) -> Iterator[Span | None]:
    """Yield the source of each cell, None for a cell without one."""
    for key, cells in _members(text, _skip(text, 1 if text.startswith("\ufeff") else 0)):
        if key == "cells":
            for cell in _items(text, cells.start):
                yield next((value for name, value in _members(text, cell.start) if name == "source"), None)
            return


def _members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """Yield the keys and values of an object."""
    place = _after(text, start, "{")
    while text[place : place + 1] == '"':
        key, place = _DECODER.raw_decode(text, place)
        value = _value(text, _after(text, _skip(text, place), ":"))
        yield key, value
        place = _skip(text, value.end)
        if text[place : place + 1] != ",":
            return
        place = _skip(text, place + 1)


def _items(text: str, start: int) -> Iterator[Span]:
    """Yield the values of an array."""
    place = _after(text, start, "[")
    while text[place : place + 1] not in ("]", ""):
        value = _value(text, place)
        yield value
        place = _skip(text, value.end)
        if text[place : place + 1] != ",":
            return
        place = _skip(text, place + 1)


def _value(text: str, place: int) -> Span:
    value, end = _DECODER.raw_decode(text, place)
    return Span(value, place, end)


def _after(text: str, place: int, sign: str) -> int:
    """Return the place of the next value after a sign."""
    if text[place : place + 1] != sign:
        raise ValueError(f"expected {sign} at {place}")
    return _skip(text, place + 1)


def _skip(text: str, place: int) -> int:
    while text[place : place + 1] and text[place] in _BLANK:
        place += 1
    return place


def _written(text: str, span: Span, source: str) -> str:
    """Return a source as JSON in the form of the present one; equal lines keep their characters."""
    if not isinstance(span.value, list):
        return json.dumps(source, ensure_ascii=text.isascii())
    items = list(_items(text, span.start))
    lines = _lines(source)
    if not items:
        return json.dumps(lines, ensure_ascii=text.isascii())
    first = text[span.start + 1 : items[0].start]
    between = text[items[0].end : items[1].start] if len(items) > 1 else f",{first or ' '}"
    parts: list[str] = []
    old = [item.value for item in items]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
        for number in range(a, b) if kind == "equal" else ():
            gap = text[items[number - 1].end : items[number].start] if number else between
            parts += [gap, text[items[number].start : items[number].end]]
        for line in lines[c:d] if kind != "equal" else ():
            parts += [between, json.dumps(line, ensure_ascii=text.isascii())]
    return f"[{first}{''.join(parts[1:])}{text[items[-1].end : span.end]}"


def _lines(source: str) -> list[str]:
    parts = source.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
