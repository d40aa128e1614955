"""The cells of a CSV file as text, with their line numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from truestep.data._files import decoded, package
from truestep.errors import BadData

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of the cells.

    Attributes:
        separator: one character between cells.
        header: True if the first line has the names of the columns.
        columns: names of the columns; None takes those of the header, or numbers them.
        null_values: cells without a value, compared after white space is stripped.
        replace: cells and their replacements, applied before anything else.
        encoding: encoding of the file.
    """

    separator: str
    header: bool
    columns: tuple[str, ...] | None
    null_values: tuple[str, ...]
    replace: dict[str, str]
    encoding: str


class Cells:
    """The contents of a CSV file.

    Args:
        path: the file, gzip or not.
        layout: the format of its cells.

    Attributes:
        unnamed: the names given here to columns without a name in the header.
        frame: text with white space stripped, null for a cell without a value; empty lines are dropped.

    Raises:
        BadData: an empty file, lines with different numbers of cells, columns without a name or with equal names, bytes
            that cannot be decoded.
        PackageMissing: polars is not installed.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        kit = package("polars", "a CSV file")
        self.path = path
        self._layout = layout
        self.unnamed: tuple[str, ...] = ()
        self._text = decoded(path, layout.encoding)
        if "\n" not in self._text:
            self._text = self._text.replace("\r", "\n")  # line ends of classic Mac OS
        if not self._text.strip():
            raise BadData("the file is empty", path=path, remedy="check the path")
        names = self._names()
        try:
            frame = kit.read_csv(
                io.BytesIO(self._text.encode()),
                infer_schema=False,
                has_header=layout.header,
                new_columns=names,
                separator=layout.separator,
            )
        except (kit.exceptions.PolarsError, ValueError, TypeError) as error:
            self._explain(len(names), error)
        if frame[names[-1]].null_count():
            frame = self._whole(frame)
        if not frame.height:
            raise BadData("the file has no rows", path=path, remedy="check the path")
        text = kit.all().str.strip_chars().replace(layout.replace)
        self.frame: polars.DataFrame = frame.select(
            kit.when(~text.is_in(list(layout.null_values))).then(text).name.keep()
        )

    def line(self, row: int) -> int:
        """Return the number of the line on which a row of `frame` begins, counted from 1."""
        filled = (number for number, cells in self._records() if any(map(str.strip, cells)) or len(cells) > 1)
        return next(islice(filled, row + self._layout.header, None))

    def lines(self) -> list[int]:
        """Return the number of the line on which each row of `frame` begins, counted from 1."""
        filled = [number for number, cells in self._records() if any(map(str.strip, cells)) or len(cells) > 1]
        return filled[self._layout.header :]

    def place(self, row: int, column: str) -> str:
        """Return the place of a cell as text, for an error."""
        return f"line {self.line(row)}, column {column!r}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each record's first line number and cells; a quoted cell can span several lines."""
        reader = csv.reader(io.StringIO(self._text, newline=""), delimiter=self._layout.separator)
        line = 1
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1

    def _names(self) -> list[str]:
        layout = self._layout
        if len(layout.separator.encode()) != 1:
            raise BadData(f"separator must be one character, got {layout.separator!r}", remedy='pass ",", ";" or "\\t"')
        first = next((cells for _, cells in self._records() if any(cells)), [])
        self._check_separator(first)
        names = [cell.strip() for cell in first] if layout.header else [f"column_{at}" for at in range(len(first))]
        if layout.columns is None:
            self.unnamed = tuple(f"column_{at}" for at, name in enumerate(names) if not name)
            names = [name or f"column_{at}" for at, name in enumerate(names)]
        if layout.columns is not None:
            names = list(layout.columns)
        if len(names) != len(first):
            raise BadData(
                f"{len(names)} columns have names",
                path=self.path,
                where="line 1",
                expected=f"expected {len(first)} names, one for each cell",
                remedy="correct columns=, or pass the separator of the file",
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or "" in names:
            raise BadData(
                f"{names.count(twice[0])} columns are named {twice[0]!r}" if twice else "a column has no name",
                path=self.path,
                where="line 1",
                expected=f"expected different names, got {', '.join(map(repr, names[:12]))}",
                remedy="pass the names of all columns in columns=",
            )
        return names

    def _check_separator(self, first: list[str]) -> None:
        """Raise an error if the first two lines are one cell each, but have equally many of another separator."""
        filled = [cells for _, cells in islice(self._records(), 3) if any(cells)]
        if len(first) != 1 or len(filled) < 2 or len(filled[1]) != 1:
            return
        for separator, name in (("\t", "tabs"), (";", "semicolons"), ("|", "bars")):
            if count := first[0].count(separator):
                if filled[1][0].count(separator) == count:
                    raise BadData(
                        f"line 1 is one cell with {name} in it",
                        path=self.path,
                        where="line 1",
                        expected=f"expected cells between separator={self._layout.separator!r}, got {first[0][:60]!r}",
                        remedy=f"pass separator={separator!r}",
                    )

    def _whole(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Return the rows that are not empty; raise for a row that ends early, which polars would pad with nulls."""
        filled: list[bool] = []
        begun = not self._layout.header
        for number, cells in self._records():
            blank = len(cells) < 2 and not any(map(str.strip, cells))
            if blank and not begun and not filled:
                continue
            if not begun:
                begun = True
                continue
            filled.append(not blank)
            if not blank and len(cells) != frame.width:
                self._ragged(number, len(cells), frame.width)
        if len(filled) != frame.height:
            self._unreadable(f"{frame.height} rows or {len(filled)}")
        return frame if all(filled) else frame.filter(filled)

    def _explain(self, width: int, error: Exception) -> NoReturn:
        """Raise an error with the line that polars could not read."""
        try:
            for number, cells in self._records():
                if len(cells) != width and any(map(str.strip, cells)):
                    self._ragged(number, len(cells), width)
        except csv.Error as problem:
            error = problem
        self._unreadable(str(error).splitlines()[0])

    def _unreadable(self, message: str) -> NoReturn:
        raise BadData(
            "the file cannot be read as CSV",
            path=self.path,
            expected=f"expected closed quotes; message of the reader: {message}",
            remedy="correct the file",
        )

    def _ragged(self, line: int, got: int, width: int) -> NoReturn:
        raise BadData(
            f"the line has {got} cells",
            path=self.path,
            where=f"line {line}",
            expected=f"expected {width}, as in the first line",
            remedy="correct the line, or pass the separator of the file",
        )
