"""Error of `truestep plan`: its peaks, next to the most bytes that torch's allocator held on this machine.

Three models on the CPU, each with one process, DistributedDataParallel on two and FSDP2 on two, four and eight devices.
The plan is made twice: from a run of the script, and from the factory of the model on shapes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import torch
from _plan_models import MODELS

ROOT = Path(__file__).resolve().parent.parent
SETUPS = (("single", 1), ("DDP", 2), ("FSDP2", 2), ("FSDP2", 4), ("FSDP2", 8))


def planned(*arguments: str) -> dict[tuple[str, int], int]:
    """Return the peaks of a plan by strategy and number of devices."""
    command = [sys.executable, "-m", "truestep", "plan", "--format", "json"]
    done = subprocess.run([*command, *arguments], cwd=ROOT / "bench", capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["strategies"]
    return {(row["strategy"], row["devices"]): row["peak"] for row in rows}


def measured(name: str, strategy: str, devices: int) -> int:
    """Return the most bytes held in a step."""
    command = [sys.executable, "_plan_models.py", name, strategy, str(devices)]
    done = subprocess.run(command, cwd=ROOT / "bench", capture_output=True, text=True, check=True)
    return next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("peak "))


def main() -> None:
    """Compare plans and measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="keep the numbers in bench/results")
    chosen = parser.parse_args()
    rows = []
    for name, (_, shape) in MODELS.items():
        by_script = planned("_plan_models.py", name)
        by_factory = planned("--input", shape, f"_plan_models:{name}")
        for strategy, devices in SETUPS:
            peak = measured(name, strategy, devices)
            row = {
                "model": name,
                "strategy": strategy,
                "devices": devices,
                "measured_mb": round(peak / 1e6, 1),
                "script_error": round(by_script[strategy, devices] / peak - 1, 4),
                "factory_error": round(by_factory[strategy, devices] / peak - 1, 4),
            }
            rows.append(row)
            print(*(f"{key}={value}" for key, value in row.items()), flush=True)
    if chosen.save:
        machine = {"cores": os.cpu_count(), "processor": platform.machine(), "torch": torch.__version__}
        text = json.dumps({"machine": machine, "rows": rows}, indent=1)
        (ROOT / "bench" / "results" / "plan.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
