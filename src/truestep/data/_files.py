"""Reading files whole: compressed or not, decoded, and with a place for what is wrong in them."""

from __future__ import annotations

import gzip
import importlib
import zlib
from pathlib import Path
from typing import Any

from truestep.errors import BadData, PackageMissing

_GZIP = b"\x1f\x8b"


def contents(path: Path) -> bytes:
    """Return what a file holds, decompressed if it is gzip.

    Raises:
        BadData: there is no such file, it cannot be read, or its compressed part is damaged.
    """
    try:
        held = path.read_bytes()
    except OSError as error:
        raise BadData(
            f"the file cannot be read: {error.strerror or error}",
            path=path,
            remedy="check the path",
        ) from error
    if held[:2] != _GZIP:
        return held
    try:
        return gzip.decompress(held)
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(
            "the compressed file is damaged",
            path=path,
            expected=f"expected a whole gzip file, got {len(held)} bytes and: {error}",
            remedy="fetch the file again",
        ) from error


def decoded(path: Path, encoding: str) -> str:
    """Return a file's text, its line ends as they are.

    Raises:
        BadData: a byte that is no text in `encoding`, or no such encoding.
    """
    held = contents(path)
    try:
        return held.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise BadData(
            f"{encoding!r} is no encoding that Python knows",
            path=path,
            remedy='pass encoding="utf-8" or "latin-1"',
        ) from error
    except UnicodeDecodeError as error:
        line = held.count(b"\n", 0, error.start) + 1
        raise BadData(
            f"byte 0x{held[error.start]:02x} is no text in {encoding}",
            path=path,
            where=f"line {line}",
            remedy='pass the encoding that the file was written in, such as encoding="latin-1"',
        ) from error


def package(name: str, what: str) -> Any:
    """Return a package that data sets of one kind need.

    Args:
        name: as it is imported.
        what: what needs it, for the error.

    Raises:
        PackageMissing: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise PackageMissing(
            f"{what} needs {name.partition('.')[0]}, which is not installed",
            remedy="run `pip install 'truestep[data]'`",
        ) from error
