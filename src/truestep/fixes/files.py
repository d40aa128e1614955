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
    """A file as text, with what is needed to write it again."""

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


def read(path: str | Path) -> FileText | None:
    """Return the text of a file; None if it is missing, too large, or not text of Python."""
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST:
            return None
        data = place.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        plain = "utf-8" if encoding == "utf-8-sig" else encoding
        text = data.decode(plain)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError, ValueError):
        return None
    if codecs.lookup(plain).name != "utf-8" and text.startswith("\ufeff"):
        return None
    return FileText(place, text, plain)
