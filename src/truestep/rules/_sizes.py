"""Sizes in memory as text."""

from __future__ import annotations


def size_text(size_bytes: int) -> str:
    """Return a size with its unit.

    >>> size_text(2_500_000), size_text(12)
    ('2.5 MB', '12 bytes')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} bytes"
