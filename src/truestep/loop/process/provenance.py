"""Provenance of a run: settings, versions, machine and state of the code, saved beside its results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from truestep.loop.checkpoint.disk.files import failures_of
from truestep.loop.checkpoint.run_folder import PROVENANCE, set_aside

if TYPE_CHECKING:
    from truestep.loop.checkpoint.checkpoint import Checkpoint

_PACKAGES = ("truestep", "torch", "numpy", "safetensors")
_LONGEST_PATCH = 2**20


def describe(device: torch.device) -> dict[str, Any]:
    """Return versions, machine, command and state of the code, in types of JSON."""
    return {
        "command": [sys.executable, *sys.argv],
        "directory": str(Path.cwd()),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor(),
        "threads": torch.get_num_threads(),
        "variables": {name: os.environ[name] for name in sorted(os.environ) if name.startswith(("OMP_", "CUDA_"))},
        "git": git_state(Path.cwd()),
    }


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in types of JSON."""
    held: dict[str, Any] = json.loads(json.dumps(dict(settings), default=str))
    return held


def write(folder: Path, settings: Mapping[str, Any], device: torch.device, resumed: Checkpoint | None = None) -> None:
    """Write the provenance of a run into its folder; a resumed run adds a line to `starts.jsonl` instead.

    `settings.json`, `environment.json` and, if the code has uncommitted changes, `changes.patch` are of the first
    start. A line of a later start has the settings and facts that differ from it, and the file name of its patch.

    Args:
        folder: folder of the run.
        settings: settings by name.
        device: device of the run.
        resumed: the checkpoint of this folder that the run resumes from; None for a new run.
    """
    environment = describe(device)
    patch = environment["git"].pop("patch", "")
    kept = json.dumps(dict(settings), indent=2, default=str) + "\n"
    with failures_of(folder):
        if resumed is not None and (folder / "settings.json").exists():
            _add_start(folder, json.loads(kept), environment, patch, settings.get("resume"), resumed)
            return
        if _text(folder / "settings.json") not in ("", kept):  # from an earlier start, or written by the user
            set_aside(folder, PROVENANCE)
        (folder / "settings.json").write_text(kept, encoding="utf-8")
        (folder / "environment.json").write_text(json.dumps(environment, indent=2) + "\n", encoding="utf-8")
        if patch:
            (folder / "changes.patch").write_text(patch, encoding="utf-8")


def _add_start(folder: Path, settings: Any, environment: Any, patch: str, resume: Any, resumed: Checkpoint) -> None:
    starts = folder / "starts.jsonl"
    line: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "resume": str(resume),
        "checkpoint": resumed.path.name,
        "step": resumed.step,
        "settings": _differing(settings, _read(folder / "settings.json"), but=("resume",)),
        "environment": _differing(environment, _read(folder / "environment.json")),
    }
    if patch:
        patches = sorted(folder.glob("changes*.patch"))
        same = (path for path in patches if path.read_text(encoding="utf-8", errors="replace") == patch)
        path = next(same, None)
        if path is None:
            path = folder / f"changes-{len(patches) + 1}.patch"
            path.write_text(patch, encoding="utf-8")
        line["patch"] = path.name
    with starts.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _read(path: Path) -> Any:
    """Return the content of a JSON file; {} if it cannot be read, so that everything differs from it."""
    try:
        return json.loads(_text(path))
    except ValueError:
        return {}


def _differing(now: Any, first: Any, but: tuple[str, ...] = ()) -> dict[str, Any]:
    first = first if isinstance(first, dict) else {}
    return {name: value for name, value in now.items() if name not in but and first.get(name, ...) != value}


def git_state(folder: Path) -> dict[str, Any]:
    """Return commit, branch and uncommitted changes of the code in a folder; {} outside of a git repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    patch = _git(folder, "diff", "HEAD")
    return {
        "commit": commit,
        "branch": _git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        "changed": bool(_git(folder, "status", "--porcelain")),
        "patch": patch + "\n" if patch and len(patch) <= _LONGEST_PATCH else "",
    }


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    if package == "torch":  # the metadata can lack the build: 2.15.0 for 2.15.0+cu132
        return str(torch.__version__)
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
