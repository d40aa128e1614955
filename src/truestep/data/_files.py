"""Reading of whole files, compressed or not, and decoding; errors have the place in the file."""

from __future__ import annotations

import gzip
import importlib
import zlib
from pathlib import Path
from typing import Any

from truestep.errors import BadData, PackageMissing

_GZIP = b"\x1f\x8b"


def contents(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if it is gzip.

    Raises:
        BadData: the file does not exist, cannot be read, or is damaged gzip.
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
            remedy="download the file again",
        ) from error


def decoded(path: Path, encoding: str) -> str:
    """Return a file's text, with its line ends unchanged.

    Raises:
        BadData: a byte that `encoding` cannot decode, or an unknown encoding.
    """
    held = contents(path)
    try:
        return held.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise BadData(
            f"encoding must be one that Python knows, got {encoding!r}",
            path=path,
            remedy='pass encoding="utf-8" or "latin-1"',
        ) from error
    except UnicodeDecodeError as error:
        line = held.count(b"\n", 0, error.start) + 1
        raise BadData(
            f"byte 0x{held[error.start]:02x} cannot be decoded as {encoding}",
            path=path,
            where=f"line {line}",
            remedy='pass the encoding of the file, such as encoding="latin-1"',
        ) from error


def package(name: str, what: str) -> Any:
    """Import and return an optional package.

    Args:
        name: name of the module.
        what: the user of the package, for the error.

    Raises:
        PackageMissing: the package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise PackageMissing(
            f"{what} needs {name.partition('.')[0]}, which is not installed",
            remedy="run `pip install 'truestep[data]'`",
        ) from error
