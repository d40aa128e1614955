"""Findings of files that have not changed since they were checked with the same version of the rules."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from truestep import __version__
from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Seen, Severity
from truestep.lint.results import FileResults, Problem

FOLDER = ".truestep_cache"
_PACKAGE = Path(__file__).parents[1]


class Cache:
    """Results by the content of files, in one JSON file; without a folder it stores nothing.

    Args:
        folder: where the file is; None for no cache.
        rules: ids of the rules that are used.
    """

    def __init__(self, folder: Path | None, rules: Iterable[str]) -> None:
        self._path = None if folder is None else folder / f"lint-{_version(rules)}.json"
        self._known: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        if self._path is not None:
            with contextlib.suppress(OSError, ValueError):
                held = json.loads(self._path.read_text(encoding="utf-8"))
                self._known = held if isinstance(held, dict) else {}

    def get(self, path: str, text: str) -> FileResults | None:
        """Return the results of a file with this text; None if they are unknown."""
        key = _key(path, text)
        held = self._known.get(key)
        if held is None:
            return None
        try:
            found = FileResults(
                path, tuple(map(_finding, held["findings"])), tuple(Problem(**one) for one in held["problems"])
            )
        except (KeyError, TypeError, ValueError):
            return None
        self._used[key] = held
        return found

    def put(self, text: str, results: FileResults) -> None:
        """Keep the results of a file with this text."""
        if self._path is not None:
            self._used[_key(results.path, text)] = {
                "findings": [asdict(one) for one in results.findings],
                "problems": [asdict(one) for one in results.problems],
            }

    def write(self) -> None:
        """Write the results that were used; a folder that cannot be written is left as it is."""
        if self._path is None or self._used.keys() <= self._known.keys():
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            (self._path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
            for old in self._path.parent.glob("lint-*.json"):
                if old != self._path:
                    old.unlink(missing_ok=True)
            draft = self._path.with_suffix(f".{os.getpid()}.tmp")
            draft.write_text(json.dumps(self._known | self._used), encoding="utf-8")
            draft.replace(self._path)


def _key(path: str, text: str) -> str:
    return hashlib.sha256(f"{path}\0{text}".encode(errors="surrogatepass")).hexdigest()[:40]


def _version(rules: Iterable[str]) -> str:
    """Return a text that changes with the code of the rules and of the model of files."""
    parts = [__version__, sys.version, *sorted(rules)]
    for room in ("rules", "syntax", "lint"):
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            status = path.stat()
            parts.append(f"{path.relative_to(_PACKAGE)}:{status.st_size}:{status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _finding(held: dict[str, Any]) -> Finding:
    return Finding(
        **held
        | {
            "severity": Severity(held["severity"]),
            "confidence": Confidence(held["confidence"]),
            "primary": _mark(held["primary"]),
            "related": tuple(map(_mark, held["related"])),
            "seen": Seen(**held["seen"]),
        }
    )


def _mark(held: dict[str, Any]) -> Mark:
    return Mark(None if held["site"] is None else Site(**held["site"]), held["label"])
