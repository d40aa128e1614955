"""Outcomes of variants that ran before: what is the same script with the same change is not run again."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import truestep
from truestep.experiments.outcome import Outcome, Step, Variant
from truestep.watch.launch import Target

_LIBRARIES = ("torch", "numpy", "lightning", "transformers", "accelerate", "pytorch-ignite", "torchvision", "timm")
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


class Kept:
    """A folder of outcomes by what they depend on.

    That is the size and time of every file below the working folder and below the folder of the script, the arguments,
    the changes, what is looked at, the environment variables that libraries of training read, and the versions of
    python, truestep, torch and its relatives. Files elsewhere are taken to be the same.

    Args:
        folder: where to; made when something is kept.
        fresh: find only what was kept by this object: what ran earlier runs again.
    """

    def __init__(self, folder: Path | None = None, *, fresh: bool = False) -> None:
        caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        self.folder = folder or caches / "truestep" / "experiments"
        self.fresh = fresh
        self._own: set[str] = set()
        self.used = 0
        """How many outcomes of earlier objects were taken from here."""

    def key(self, folder: Path, target: Target, steps: int | None, processes: int, variant: Variant) -> str:
        """Return what names the outcome of a variant.

        Args:
            folder: the working folder.
            target: what is run.
            steps: when it ends.
            processes: how many run it.
            variant: what is otherwise.
        """
        script = (folder / target.name).resolve()
        folders = [folder.resolve(), Path(truestep.__file__).parent]
        if not target.module and not script.is_relative_to(folder.resolve()):
            folders.append(script.parent if script.is_file() else script)
        depends = [
            str(folder.resolve()),
            [target.name, target.arguments, target.module, steps, processes],
            [variant.changes, variant.instruments, variant.arguments],
            [entry for place in folders for entry in _files(place)],
            sys.version,
            [(name, _version(name)) for name in _LIBRARIES],
            sorted(
                item for item in os.environ.items() if item[0].startswith(("TORCH", "OMP_", "MKL_", "CUDA", "PYTHON"))
            ),
        ]
        return hashlib.sha256(json.dumps(depends, default=dict).encode()).hexdigest()[:32]

    def find(self, key: str, variant: Variant) -> Outcome | None:
        """Return an outcome that was kept; None where there is none that can be read."""
        if self.fresh and key not in self._own:
            return None
        try:
            told = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            steps = tuple(Step(*step) for step in told.pop("all_steps"))
            outcome = Outcome(variant=variant, all_steps=steps, **told)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        self.used += key not in self._own
        return outcome

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless a limit or a person ended it. A disk that is full or read-only keeps none."""
        if outcome.how in ("killed", "interrupted"):
            return
        names = [field.name for field in dataclasses.fields(outcome) if field.name != "variant"]
        told = {name: getattr(outcome, name) for name in names}
        told["all_steps"] = [dataclasses.astuple(step) for step in outcome.all_steps]
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = self.folder / f"{key}.{os.getpid()}.partial"
            partial.write_text(json.dumps(told), encoding="utf-8")
            partial.replace(self.folder / f"{key}.json")
            self._own.add(key)
            self._thin()

    def _thin(self) -> None:
        """Remove the oldest outcomes when there are many."""
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_OUTCOMES]:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of the files below a folder, in a fixed order, up to a number."""
    left = _MOST_FILES
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            with contextlib.suppress(OSError):
                found = os.stat(os.path.join(place, name))
                yield os.path.relpath(os.path.join(place, name), folder), found.st_size, found.st_mtime_ns
            left -= 1
            if not left:
                return


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
