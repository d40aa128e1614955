"""What `truestep tune` says of three programs, on this machine.

FashionMNIST as a beginner writes it, and two of the programs of `truestep new`: digits (convolutions) and tokens (a
transformer). What it says is kept, with the load of the machine before and after: figures are those of one machine.
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
from pathlib import Path

import torch

HERE = Path(__file__).parent
DATA = Path(os.environ.get("TRUESTEP_DATA", "../shared/data")).resolve()
TEMPLATES = HERE.parent / "src" / "truestep" / "templates"
PROGRAMS: dict[str, tuple[Path, list[str]]] = {
    "FashionMNIST, by samples": (HERE / "_fashion_program.py", [str(DATA / "fashion-mnist")]),
    "digits": (TEMPLATES / "digits.py", ["--max-epochs", "400"]),
    "tokens": (TEMPLATES / "tokens.py", ["--data", str(DATA), "--max-steps", "20000"]),
}


def tuned(script: Path, arguments: list[str], budget: float) -> dict:
    """Return what is said of one program, which lies alone in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(script, Path(folder, "train.py"))
        command = [sys.executable, "-m", "truestep", "tune", "--format", "json", "--budget", str(budget), "train.py"]
        before = os.getloadavg()[0]
        done = subprocess.run([*command, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout) | {"load": [round(before, 1), round(os.getloadavg()[0], 1)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=420.0, help="seconds for each program")
    parser.add_argument("--only", choices=PROGRAMS, help="this program, beside what is kept of the others")
    parser.add_argument("--save", action="store_true", help="write bench/results/tune.json")
    options = parser.parse_args()
    kept = HERE / "results" / "tune.json"
    found = json.loads(kept.read_text())["programs"] if options.only and kept.exists() else {}
    for name, (script, arguments) in PROGRAMS.items():
        if options.only in (None, name):
            found[name] = tuned(script, arguments, options.budget)
            print(f"\n{name}: {found[name]['step_s'] * 1e3:.2f} ms a step")
            for row in [*found[name]["rows"], found[name]["control"], found[name]["together"]]:
                if row is not None and row["speed"] is not None:
                    low, high = row["interval"]
                    print(f"{', '.join(row['names']):40}{row['speed']:6.2f}{low:8.2f} -{high:6.2f}  {row['status']}")
            print(f"best: {', '.join(found[name]['best']) or 'as it is'}", flush=True)
    if options.save:
        machine = {"torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count()}
        machine["threads"] = torch.get_num_threads()
        kept.write_text(json.dumps({"machine": machine, "programs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
