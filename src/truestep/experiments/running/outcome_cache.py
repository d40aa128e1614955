"""A cache of outcomes: the same script with the same changes does not run again."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from truestep.experiments.running.inside.outside_reads import PACKAGE, packages, stamps
from truestep.experiments.running.outcome import RunOutcome, Step, Variant
from truestep.supervision.launching.launch import Target

_SKIPPED = {
    ".git",
    ".hg",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
}
_MOST_FILES = 20_000
_MOST_OUTCOMES = 300
_OF_THE_TERMINAL = {
    "_",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "TERM",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "LS_COLORS",
    "PS1",
    "DISPLAY",
}
"""Environment variables that depend on the terminal, and are ignored. So are those that begin with one of:"""
_OF_THE_SESSION = (
    "SSH_",
    "XDG_SESSION",
    "XDG_RUNTIME",
    "DBUS_",
    "TMUX",
    "STY",
    "VTE_",
    "TERM_",
    "WAYLAND_",
    "COLORTERM",
)


def user_caches() -> Path:
    """Return the folder of the user's caches: XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


class OutcomeCache:
    """A folder of outcomes, keyed by their inputs.

    The key is a hash of all inputs that are known before a run: size and time of every file below the working folder
    and below the folder of the script, the arguments, changes, instruments and environment, and the versions of Python,
    truestep and the installed packages. Each outcome is stored with the files that the run read elsewhere
    (`running.outside_reads`), with size and time, and is valid while these are unchanged. An outcome is not kept if the
    script crashed, if a limit or Ctrl-C ended it, or if the files that it read are not all known.

    Args:
        folder: folder of the cache; created with the first outcome. Default: the user's cache.
        fresh: True finds only outcomes added by this object: variants of earlier commands run again.
    """

    def __init__(self, folder: Path | None = None, *, fresh: bool = False) -> None:
        self.folder = folder or user_caches() / "truestep" / "experiments"
        self.fresh = fresh
        self._own: dict[str, RunOutcome] = {}
        self.used = 0
        """Number of outcomes that were found from earlier commands."""

    def key(self, folder: Path, target: Target, steps: int | None, processes: int, variant: Variant) -> str:
        """Return the key of the outcome of a variant; "" if a folder has too many files to check.

        Args:
            folder: the working folder.
            target: the script or module, and its arguments.
            steps: number of steps after which it is stopped.
            processes: number of processes.
            variant: changes, instruments and arguments.
        """
        script = (folder / target.name).resolve()
        folders = [folder.resolve(), PACKAGE]
        if not target.module and not script.is_relative_to(folder.resolve()):
            folders.append(script.parent if script.is_file() else script)
        files = [list(islice(_files(place), _MOST_FILES + 1)) for place in folders]
        if any(len(found) > _MOST_FILES for found in files):
            return ""
        depends = [
            [str(folder.resolve()), platform.node()],
            [target.name, target.arguments, target.module, steps, processes],
            [variant.changes, variant.instruments, variant.arguments, dict(variant.environment)],
            files,
            [sys.version, list(_distributions())],
            sorted(item for item in os.environ.items() if not _is_of_the_terminal(item[0])),
        ]
        return hashlib.sha256(json.dumps(depends, default=dict).encode()).hexdigest()[:32]

    def find(self, key: str, variant: Variant) -> RunOutcome | None:
        """Return a kept outcome; None if it is missing or unreadable, or if a file that the run read has changed."""
        if key in self._own:
            return replace(self._own[key], variant=variant)
        if self.fresh or not key:
            return None
        try:
            fields = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            read = [tuple(stamp) for stamp in fields.pop("read")]
            if read != stamps(path for path, _, _ in read):
                return None
            steps = tuple(Step(*step) for step in fields.pop("all_steps"))
            outcome = RunOutcome(variant=variant, all_steps=steps, **fields)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        self.used += 1
        return outcome

    def add(self, key: str, outcome: RunOutcome, read: Iterable[str] | None, begun_ns: int = sys.maxsize) -> None:
        """Keep an outcome if all its inputs are known. A full or read-only disk is ignored.

        Args:
            key: key of the outcome; "" keeps nothing.
            outcome: outcome of a run.
            read: files outside of the working folder that it read; None if unknown.
            begun_ns: start of the run, in nanoseconds since the epoch: a newer file was changed during the run.
        """
        if not key or outcome.how not in ("finished", "stopped"):
            return
        self._own[key] = outcome
        if read is None:
            return
        found = stamps(read)
        if len(found) > _MOST_FILES or any(time_ns >= begun_ns for _, _, time_ns in found):
            return
        names = [field.name for field in dataclasses.fields(outcome) if field.name != "variant"]
        fields = {name: getattr(outcome, name) for name in names}
        fields["all_steps"] = [dataclasses.astuple(step) for step in outcome.all_steps]
        fields["read"] = found
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = self.folder / f"{key}.{os.getpid()}.partial"
            partial.write_text(json.dumps(fields), encoding="utf-8")
            partial.replace(self.folder / f"{key}.json")
            self._thin()

    def _thin(self) -> None:
        """Remove the oldest outcomes when there are many."""
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_OUTCOMES]:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of the files below a folder, in a fixed order."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            with contextlib.suppress(OSError):
                found = os.stat(os.path.join(place, name))
                yield os.path.relpath(os.path.join(place, name), folder), found.st_size, found.st_mtime_ns


def _distributions() -> Iterator[tuple[str, list[str]]]:
    """Yield the folders of installed packages, each with the names and versions of its packages."""
    for folder in packages():
        with contextlib.suppress(OSError):
            names = sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info", ".pth")))
            yield folder, names


def _is_of_the_terminal(name: str) -> bool:
    return name in _OF_THE_TERMINAL or name.startswith(_OF_THE_SESSION)
