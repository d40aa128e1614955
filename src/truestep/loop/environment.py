"""What a run was made with: its settings, versions, machine and the state of the code, kept beside its results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

_PACKAGES = ("truestep", "torch", "numpy", "safetensors")
_LONGEST_PATCH = 2**20


def describe(device: torch.device) -> dict[str, Any]:
    """Return versions, machine, command and code state, as JSON can hold them."""
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


def write(folder: Path, settings: Mapping[str, Any], device: torch.device) -> None:
    """Write `settings.json`, `environment.json` and, where the code has changes, `changes.patch` into a folder."""
    environment = describe(device)
    patch = environment["git"].pop("patch", "")
    (folder / "settings.json").write_text(json.dumps(dict(settings), indent=2, default=str) + "\n", encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps(environment, indent=2) + "\n", encoding="utf-8")
    if patch:
        (folder / "changes.patch").write_text(patch, encoding="utf-8")


def git_state(folder: Path) -> dict[str, Any]:
    """Return commit, branch and uncommitted changes of the code in a folder; an empty dict where git knows nothing."""
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
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
