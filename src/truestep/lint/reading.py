"""The text of a file to check, or the reason that it cannot be checked."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from pathlib import Path

from truestep.lint.results import Problem

LARGEST = 2_000_000
"""Size in bytes of the largest Python file to check; written code is far smaller."""
LARGEST_NOTEBOOK = 50_000_000
"""The same for notebooks, which contain pictures."""
_WORDS = ("zero_grad", ".backward", "lightning")
_TORCH = re.compile(r"\btorch\b")
"""A file without any of these words has no code that the rules know."""


def text_of(path: Path) -> str | Problem:
    """Return the text of a file; a problem if it is unreadable, too large, binary or not in its encoding."""
    largest = LARGEST_NOTEBOOK if path.suffix == ".ipynb" else LARGEST
    try:
        size = path.stat().st_size
        if size > largest:
            return Problem(
                str(path), f"the file has {size / 1e6:.0f} MB, and is not checked from {largest / 1e6:.0f} MB on"
            )
        data = path.read_bytes()
    except OSError as error:
        return Problem(str(path), f"the file cannot be read: {error.strerror or error}")
    return decoded(str(path), data)


def decoded(path: str, data: bytes) -> str | Problem:
    """Return bytes as text, in the encoding that they declare."""
    if b"\0" in data:
        return Problem(path, "the file is binary")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except SyntaxError:
        return Problem(path, "the file declares an unknown encoding, or is not UTF-8")
    except (UnicodeDecodeError, LookupError):
        return Problem(path, "the file is not in the encoding that it declares (UTF-8 by default)")
    text = text.removeprefix(codecs.BOM_UTF8.decode())
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def matters(text: str) -> bool:
    """Return True if a text can have training code.

    >>> matters("import torch"), matters("import os")
    (True, False)
    """
    # Plain searches are much faster than the pattern, and most files of a folder fail all of them.
    return any(word in text for word in _WORDS) or ("torch" in text and _TORCH.search(text) is not None)


def has_comments(text: str) -> bool:
    """Return True if a text may have suppression comments."""
    return "truestep:" in text or "TrueStep:" in text or "TRUESTEP:" in text
