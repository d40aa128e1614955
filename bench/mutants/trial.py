"""Runs of a mutant: alone, to learn whether it differs from its program, and under supervision."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT_S = 150.0
_SUPPORT = Path(__file__).resolve().parents[2] / "tests" / "support"


@dataclass
class Trial:
    """Result of one mutant."""

    valid: bool
    why: str = ""
    """Why it is not valid: "crashed", "equal", "too slow"."""
    found: list[tuple[str, int]] = field(default_factory=list)
    """Rule and line of each finding of medium or high confidence; the program itself has none."""
    low: list[str] = field(default_factory=list)
    """Rules of the findings of low confidence."""
    errors: list[str] = field(default_factory=list)
    placed: bool = False
    """True if a finding names a line of the loop or the function with the mistake, or one within ten lines of it."""


def digest(path: Path, cwd: Path | None = None) -> str:
    """Return a digest of all that a program prints and of all weights that its optimizers make; "" if it crashes.

    It runs in an empty folder, or in `cwd`.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result")
        try:
            subprocess.run(
                [sys.executable, __file__, str(path), str(result)],
                cwd=cwd or folder,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "slow"
        return result.read_text() if result.is_file() else ""


def run(
    text: str,
    name: str,
    original: str,
    scope: tuple[int, int],
    silent: bool,
    beside: Path | None = None,
    script: str = "",
) -> Trial:
    """Run a mutant.

    Args:
        text: the mutant.
        name: file name of its program.
        original: digest of its program.
        scope: first and last line where the cause can be named.
        silent: True if the mistake may change no number.
        beside: folder with the other files of the program.
        script: file that is run, if it is not the mutant itself.
    """
    from programs import supervise

    with _placed(text, name, beside) as folder:
        made = digest(folder / (script or name), folder if beside else None)
    if made in ("", "slow"):
        return Trial(False, "crashed" if not made else "too slow")
    if made == original and not silent:
        return Trial(False, "equal")
    with _placed(text, name, beside) as folder:
        path = folder / (script or name)
        run = supervise(path, cwd=folder) if beside else supervise(path)
    sure = sorted(run.found)
    first, last = scope[0] - 10, scope[1] + 10
    here = {one["rule"] for one in run.findings if Path(name).name in one["site"]}
    placed = any(first <= line <= last for rule, line in sure if rule in here)
    low = sorted({one["rule"] for one in run.findings if one["confidence"] == "low"} - {rule for rule, _ in sure})
    how = run.how if run.how != "finished" else ""
    return Trial(True, how, sure, low, [*run.errors, how] if how else run.errors, placed)


@contextmanager
def _placed(text: str, name: str, beside: Path | None) -> Iterator[Path]:
    """Give a new folder with the mutant, among the other files of its program."""
    with tempfile.TemporaryDirectory() as folder:
        if beside is not None:
            shutil.copytree(beside, folder, dirs_exist_ok=True)
        Path(folder, name).write_text(text, encoding="utf-8")
        yield Path(folder)


def _main(path: str, result: str) -> None:
    """Run a program in this process, and leave its digest in a file."""
    import io
    import runpy
    from contextlib import redirect_stdout

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    seen = hashlib.sha256()

    def read(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                seen.update(parameter.detach().to(torch.float64).cpu().contiguous().numpy().tobytes())

    register_optimizer_step_post_hook(read)
    sys.argv, sys.path[0] = [path], str(Path(path).parent)
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as exit:
        if exit.code:
            os._exit(1)
    except BaseException:
        os._exit(1)
    seen.update(printed.getvalue().encode())
    Path(result).write_text(json.dumps(seen.hexdigest()))
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
