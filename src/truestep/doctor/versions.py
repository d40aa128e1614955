"""The versions that the tests were run with, as in docs/reference/versions.md, compared with the installed ones."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.doctor.advice.advice import Advice, Level
from truestep.doctor.facts import OLDEST_TORCH, Facts, release

CHECKED_TORCH = (OLDEST_TORCH, (2, 13), (2, 15))
CHECKED_PYTHON = ((3, 11), (3, 13))
Versions = tuple[tuple[int, int], ...]


def checked() -> dict[str, list[str]]:
    """Return the versions that the tests were run with, as text."""
    return {"torch": [written(one) for one in CHECKED_TORCH], "python": [written(one) for one in CHECKED_PYTHON]}


def written(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def outside(version: str, among: Versions) -> str:
    """Return where a version lies relative to others; "" if it is one of them, or unknown.

    >>> [outside(version, CHECKED_TORCH) for version in ("2.13.1+cpu", "2.9.0", "2.16.0.dev1", "2.7.1", "unknown")]
    ['', 'between', 'newer', 'older', '']
    """
    minor = release(version)[:2]
    if len(minor) < 2 or minor in among:
        return ""
    return "older" if minor < among[0] else "newer" if minor > among[-1] else "between"


def tested_versions(facts: Facts) -> str:
    """Return text with the tested versions, and the installed ones that lie between them."""
    versions = checked()
    found = f"torch {_listed(versions['torch'])}; Python {_listed(versions['python'])}"
    at_hand = (
        ("torch", facts.torch.version or "", CHECKED_TORCH),
        ("Python", facts.interpreter.version, CHECKED_PYTHON),
    )
    between = [
        f"{name} {written(release(version)[:2])}"
        for name, version, among in at_hand
        if outside(version, among) == "between"
    ]
    verb = "lie" if len(between) > 1 else "lies"
    return f"{found}\n{_listed(between)} {verb} between these" if between else found


def on_versions(facts: Facts) -> Iterator[Advice]:
    """Yield advice if torch or Python is newer than any tested one, or Python older (for torch: `on_build`)."""
    if facts.torch.version is not None and outside(facts.torch.version, CHECKED_TORCH) == "newer":
        newest = written(CHECKED_TORCH[-1])
        text = f"TrueStep was not checked with a torch newer than {newest}; if it fails, try torch {newest}"
        yield Advice(Level.HINT, "torch-not-checked", "torch", text)
    where = outside(facts.interpreter.version, CHECKED_PYTHON)
    if where in ("older", "newer"):
        nearest = written(CHECKED_PYTHON[-1 if where == "newer" else 0])
        text = f"TrueStep was not checked with a Python {where} than {nearest}; if it fails, try Python {nearest}"
        yield Advice(Level.HINT, "python-not-checked", "python", text)


def _listed(words: list[str]) -> str:
    """Return words as a list in a sentence.

    >>> _listed(["2.8"]), _listed(["2.8", "2.13", "2.15"])
    ('2.8', '2.8, 2.13 and 2.15')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
