"""Querying torch in a child process."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import signal
import subprocess
import sys
from importlib import metadata
from typing import Any

from truestep.doctor.facts import Accelerator, Speed, Torch
from truestep.doctor.readers.inside_torch import ANSWERS

_PATIENCE_S = 90.0
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from truestep.doctor.readers.inside_torch import main; main()"
)


def ask(patience: float = _PATIENCE_S) -> tuple[Torch, tuple[Accelerator, ...], tuple[Speed, ...]]:
    """Return the build of torch, the accelerators it sees, and the speed of the CPU if it sees none.

    Args:
        patience: timeout in seconds for the answers of torch.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:  # a namespace package, a folder named torch, has no origin
        return Torch(), (), ()
    said, status, complaint = _run([sys.executable, "-c", _CHILD, json.dumps(sys.path)], patience)
    answers: dict[str, Any] = {}
    for line in said.splitlines():
        with contextlib.suppress(ValueError):  # libraries may write other lines in between
            answers |= json.loads(line) if line.startswith("{") else {}
    missing = next((name for name in ANSWERS if name not in answers), None)
    failure = _failure(missing, status, complaint, patience) if missing else None
    return read(answers, failure)


def read(
    answers: dict[str, Any], failure: str | None = None
) -> tuple[Torch, tuple[Accelerator, ...], tuple[Speed, ...]]:
    """Return the facts in the answers."""
    build: dict[str, Any] = answers.get("build", {}) | answers.get("device", {})
    build |= {name: tuple(build.get(name, ())) for name in ("architectures", "backends")}
    torch = Torch(
        version=answers.get("version") or _installed(),
        failure=failure,
        warnings=tuple(answers.get("warnings", ())),
        **build,
    )
    accelerators = tuple(
        Accelerator(**(answer | {"native": tuple(answer["native"]), "speeds": _speeds(answer.get("speeds", ()))}))
        for answer in answers.get("accelerators", ())
    )
    return torch, accelerators, _speeds(answers.get("speeds", ()))


def _speeds(answers: Any) -> tuple[Speed, ...]:
    return tuple(Speed(**speed) for speed in answers)


def _installed() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _run(command: list[str], patience: float) -> tuple[str, int | None, str]:
    """Return the output of a command, its status (None after a timeout) and its error output."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired as late:
        return _text(late.stdout), None, _text(late.stderr)
    return _text(done.stdout), done.returncode, _text(done.stderr)


def _text(written: bytes | str | None) -> str:
    return written.decode("utf-8", "replace") if isinstance(written, bytes) else written or ""


def _failure(missing: str, status: int | None, complaint: str, patience: float) -> str:
    """Return a sentence on the first missing answer and the reason."""
    asked = {
        "version": "it was imported",
        "build": "it was asked about its build",
        "device": "it looked for a device",
        "accelerators": "it was asked about accelerators",
        "speeds": "a product of two matrices was timed",
    }[missing]
    if status is None:
        return f"no answer within {patience:.0f} s when {asked}"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the process died of {name} when {asked}"
    last = (complaint.strip().splitlines() or ["it ended without a message"])[-1].strip()
    return f"{last}, when {asked}"
