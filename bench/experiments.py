"""Results and times of each experiment on the plain programs of `examples/raw`.

Every command runs as a user types it, in a separate folder that contains only the program.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("TRUESTEP_DATA", ROOT / "../shared/data")).resolve()
MOST = 12
"""Longer lists are series of steps: only their length, first and last are written down."""


@dataclass(frozen=True)
class Case:
    """One command on one program.

    Attributes:
        command: of truestep.
        program: in examples/raw.
        options: of the command.
        arguments: of the program.
    """

    command: str
    program: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Return the command line that a user types."""
        return " ".join(["truestep", self.command, *self.options, f"{self.program}.py", *self.arguments])


RESUME = ("--resume-args", "--resume fashion.pth")
CASES = (
    *(Case("overfit", program) for program in ("fashion", "reviews", "characters")),
    *(Case("prove", program) for program in ("reviews", "characters")),
    *(Case("tune", program) for program in ("fashion", "reviews", "characters")),
    Case("verify-resume", "fashion", RESUME, ("--images", "1280", "--epochs", "4")),
    *(Case("profile", program) for program in ("fashion", "reviews", "characters")),
)


def thinned(value: Any) -> Any:
    """Return a document without its long series."""
    if isinstance(value, dict):
        return {name: thinned(part) for name, part in value.items() if name not in ("report", "said")}
    if isinstance(value, list) and len(value) > MOST and not isinstance(value[0], dict):
        return {"length": len(value), "first": thinned(value[0]), "last": thinned(value[-1])}
    if isinstance(value, list):
        return [thinned(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measured(case: Case) -> dict[str, Any]:
    """Run a case, print its output, and return it with its exit code and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples" / "raw" / f"{case.program}.py", folder)
        command = [sys.executable, "-m", "truestep", case.command, "--format", "json", *case.options]
        environment = os.environ | {"TRUESTEP_DATA": str(DATA)}
        begun = time.perf_counter()
        done = subprocess.run(
            [*command, f"{case.program}.py", *case.arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - begun
    try:
        said = thinned(json.loads(done.stdout))
    except ValueError:
        said = {"failed": done.stderr[-500:]}
    print(f"{case.line}\n  exit code {done.returncode}, {seconds:.0f} s")
    return {"command": case.line, "exit_code": done.returncode, "seconds": round(seconds), "said": said}


def main() -> None:
    """Run the requested cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="commands or programs; all without one")
    parser.add_argument("--save", action="store_true", help="keep the numbers in bench/results")
    arguments = parser.parse_args()
    path = ROOT / "bench" / "results" / "experiments.json"
    cases = [case for case in CASES if not arguments.only or {case.command, case.program} & set(arguments.only)]
    rows = [measured(case) for case in cases]
    if arguments.save:
        again = {row["command"] for row in rows}
        before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
        kept = [row for row in before if row["command"] not in again]
        order = [case.line for case in CASES]
        every = sorted(
            (row for row in [*kept, *rows] if row["command"] in order), key=lambda r: order.index(r["command"])
        )
        machine = {"cores": os.cpu_count(), "processor": platform.machine(), "torch": torch.__version__}
        path.write_text(json.dumps({"machine": machine, "rows": every}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
