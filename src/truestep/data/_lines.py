"""Lines of text with their classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from truestep.data._files import decoded
from truestep.errors import BadData

Side = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line of a file.

    Attributes:
        text: the text, without label and line end.
        label: name of its class.
        path, number: its file and line number, counted from 1.
    """

    text: str
    label: str
    path: Path
    number: int


_HEADER = frozenset({"label", "labels", "class", "category", "target", "sentiment", "y"})
"""Usual names of the column of labels in a header, in lower case."""


def labelled_lines(
    source: str | Path | Mapping[str, str | Path], encoding: str, label: Side, *, header: bool = False
) -> tuple[list[LabelledLine], tuple[str, ...]]:
    """Return the lines of the source of `text`, and the classes in the order of their labels.

    Raises:
        BadData: a missing or empty file, an empty line, or a line without a tab.
    """
    if label not in ("first", "last"):
        raise BadData(
            f'label must be "first" or "last", got {label!r}', remedy="pass the side of the tab with the label"
        )
    if isinstance(source, Mapping):
        return _by_file({name: Path(path) for name, path in source.items()}, encoding)
    path = Path(source)
    if path.is_dir():
        return _by_file(_classes_of(path), encoding)
    lines = list(_tabbed(path, encoding, label))
    if header:
        lines = lines[1:]
    elif (
        len(lines) > 1
        and lines[0].label.lower() in _HEADER
        and lines[0].label not in {line.label for line in lines[1:]}
    ):
        raise BadData(
            f"line 1 is the only line with the label {lines[0].label!r}",
            path=path,
            where="line 1",
            expected=f"expected a text and its label, got a header: {lines[0].text[:40]!r}",
            remedy="pass header=True to skip the line, or delete it",
        )
    return lines, tuple(sorted({line.label for line in lines}))


def _classes_of(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by class: the name without suffix, or the suffix if only that differs."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise BadData("the folder holds no files", path=folder, remedy="check the path")
    for names in ([path.name.partition(".")[0] for path in files], [path.suffix.lstrip(".") for path in files]):
        if len(set(names)) == len(files) and all(names):
            return dict(sorted(zip(names, files, strict=True)))
    raise BadData(
        "the classes cannot be derived from the names of the files",
        path=folder,
        expected=f"expected one file per class, got {', '.join(path.name for path in files[:4])}",
        remedy='pass {"class": path, ...}',
    )


def _by_file(files: Mapping[str, Path], encoding: str) -> tuple[list[LabelledLine], tuple[str, ...]]:
    lines = [
        LabelledLine(text, name, path, number)
        for name, path in files.items()
        for number, text in _filled(path, encoding)
    ]
    return lines, tuple(files)


def _tabbed(path: Path, encoding: str, label: Side) -> Iterator[LabelledLine]:
    for number, line in _filled(path, encoding):
        tabs = line.count("\t")
        if tabs != 1:
            raise BadData(
                f"the line has {tabs} tabs",
                path=path,
                where=f"line {number}",
                expected="expected a text and its label with one tab between them",
                remedy="correct the line, or read the file with `data.csv`",
            )
        text, name = line.split("\t") if label == "last" else reversed(line.split("\t"))
        if not name.strip():
            raise BadData(
                "the line has no label",
                path=path,
                where=f"line {number}",
                expected="expected a text and its label with one tab between them",
                remedy="write its label, or delete the line",
            )
        yield LabelledLine(text, name.strip(), path, number)


def _filled(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the numbers and texts of a file's lines. Only a newline ends a line, not 0x85 of latin-1."""
    lines = decoded(path, encoding).removesuffix("\n").split("\n")
    if lines == [""]:
        raise BadData("the file is empty", path=path, remedy="check the path")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise BadData("the line is empty", path=path, where=f"line {number}", remedy="delete the line")
        yield number, line.removesuffix("\r")


def labels_of(lines: Sequence[LabelledLine], classes: Sequence[str]) -> list[int]:
    """Return the index of each line's label in the classes.

    Raises:
        BadData: a label that is not among the classes.
    """
    places = {name: place for place, name in enumerate(classes)}
    for line in lines:
        if line.label not in places:
            raise BadData(
                f"label {line.label!r} is not among the classes",
                path=line.path,
                where=f"line {line.number}",
                expected=f"expected {', '.join(classes[:8])}",
                remedy="correct the label, or add it to classes=",
            )
    return [places[line.label] for line in lines]
