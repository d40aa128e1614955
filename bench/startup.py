"""Cost of starting: ``import truestep``, and an empty script under ``truestep run`` against python alone."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(command: list[str], rounds: int) -> list[float]:
    """Return the wall time of each run of a command."""
    spent = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        spent.append(time.perf_counter() - begun)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--save", action="store_true", help="write bench/results/startup.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty, training = Path(folder, "empty.py"), Path(folder, "training.py")
        empty.write_text("pass\n")
        training.write_text("import torch\n")
        commands = {
            "python, empty": [sys.executable, "-c", "pass"],
            "import truestep": [sys.executable, "-c", "import truestep"],
            "python, empty script": [sys.executable, str(empty)],
            "truestep run, empty script": [sys.executable, "-m", "truestep", "run", "--quiet", str(empty)],
            "python, import torch": [sys.executable, str(training)],
            "truestep run, import torch": [sys.executable, "-m", "truestep", "run", "--quiet", str(training)],
            "truestep --help": [sys.executable, "-m", "truestep", "--help"],
        }
        rows = {name: statistics.median(seconds(command, options.rounds)) for name, command in commands.items()}
    base = rows["python, empty"]
    for name, value in rows.items():
        print(f"{name:30}{value * 1e3:>9.0f} ms")
    print(f"import truestep alone: {(rows['import truestep'] - base) * 1e3:.0f} ms")
    if options.save:
        result = {"python": platform.python_version(), "median_ms": {k: round(v * 1e3, 1) for k, v in rows.items()}}
        path = Path(__file__).parent / "results" / "startup.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
