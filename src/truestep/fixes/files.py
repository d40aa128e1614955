"""The text of a user's file with its line ends and its encoding, read and written."""

from __future__ import annotations

import codecs
import io
import linecache
import tokenize
from dataclasses import dataclass
from pathlib import Path

LARGEST = 2_000_000
"""Size in bytes of the largest file to fix."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as text, with its encoding."""

    path: Path
    text: str
    """With a byte order mark, if the file has one, and with its line ends."""
    encoding: str

    def write(self, text: str) -> None:
        """Write another text to the file, in the same encoding.

        Raises:
            OSError: the file cannot be written.
            UnicodeEncodeError: the encoding of the file has no such character.
        """
        data = text.encode(self.encoding)
        self.path.write_bytes(data)
        linecache.checkcache(str(self.path))


class StandardInput(FileText):
    """A text that came from standard input, under the name of a file."""

    __slots__ = ()

    @classmethod
    def of(cls, name: str, data: bytes) -> StandardInput | None:
        """Return the text; None if it is too large or not text of Python."""
        decoded = _decoded(data)
        return None if decoded is None else cls(Path(name), *decoded)


def read(path: str | Path, largest: int = LARGEST) -> FileText | None:
    """Return the text of a file; None if it is missing, larger than `largest` bytes, or not text of Python."""
    place = Path(path)
    try:
        decoded = _decoded(place.read_bytes()) if place.stat().st_size <= largest else None
    except (OSError, ValueError):
        return None
    return None if decoded is None else FileText(place, *decoded)


def _decoded(data: bytes) -> tuple[str, str] | None:
    """Return bytes as text, with their encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        plain = "utf-8" if encoding == "utf-8-sig" else encoding
        text = data.decode(plain)
    except (SyntaxError, UnicodeDecodeError, LookupError, ValueError):
        return None
    if "\0" in text or (text.startswith("\ufeff") and codecs.lookup(plain).name != "utf-8"):
        return None
    return text, plain
