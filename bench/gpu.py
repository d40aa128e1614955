"""Checks, costs and speeds that need a GPU, in less than ten minutes, with torch and numpy alone.

    make gpu
    python bench/gpu.py --device cpu --quick    # every line of it, without a GPU

Each part runs in a separate process and writes each row when it is measured, so an error of the device, or the time
limit, ends only that part. Ratios are medians over rounds in which both sides take turns in the same process. The exit
code is 1 if a check or a part failed, and 2 without such a device.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = {"checks": 0.45, "step": 0.15, "toolkit": 0.1, "loader": 0.1, "gpt": 0.2}
"""Parts in their order, with their shares of the time."""
_LEAST_S = 20.0
Row = dict[str, Any]


def no_device(kind: str) -> str:
    """Return the reason that a device cannot be used, or "": checked in a process that ends before the parts begin."""
    asked = "import torch; print(torch.cuda.is_available(), torch.__version__)" if kind == "cuda" else "print(True)"
    try:
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return "torch did not answer within three minutes"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["torch cannot be imported"])[-1]
    found, *built = done.stdout.split()
    return "" if found == "True" else f"this machine has no CUDA device that torch {''.join(built)} can use"


def run_part(name: str, kind: str, seconds: float, *, quick: bool) -> tuple[list[Row], Row]:
    """Run a part; return its rows, and how it ended.

    Args:
        name: of the part.
        kind: of the device.
        seconds: the part ends itself by then; some time later it is ended.
        quick: whether sizes and rounds are tiny.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.jsonl"
        command = [sys.executable, "-m", "_gpu_parts", name, kind, str(seconds), str(int(quick)), str(out)]
        places = (ROOT / "src", ROOT / "tests" / "support", ROOT / "bench")
        values = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*map(str, places), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            "TRUESTEP_WATCH": "0",
        }
        begun, ended, errors = time.monotonic(), "well", ""
        try:
            done = subprocess.run(
                command, env=values, stderr=subprocess.PIPE, text=True, timeout=1.5 * seconds + _LEAST_S, check=False
            )
            if done.returncode:
                ended, errors = f"with exit code {done.returncode}", done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            ended = "by the clock"
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return rows, {"part": name, "ended": ended, "seconds": round(time.monotonic() - begun, 1), "errors": errors}


def show(name: str, rows: list[Row], end: Row) -> None:
    """Print the table of a part."""
    print(f"\n{name}: ended {end['ended']} after {end['seconds']:g} s")
    for row in rows:
        if name == "checks":
            why = row["why"].strip().splitlines()[-1][:100] if row["why"] else ""
            print(f"  {row['outcome']:8}{row['seconds']:>7.1f} s  {row['check']}{f': {why}' if why else ''}")
        else:
            print("  " + "  ".join(f"{key} {value}" for key, value in row.items()))
    if end["errors"]:
        print(end["errors"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu", "standin"))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test that it runs")
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for all parts (default: %(default)g)")
    parser.add_argument("--only", nargs="*", choices=tuple(PARTS), default=tuple(PARTS), help="parts")
    parser.add_argument("--out", type=Path, help="where results go (default: bench/results/gpu.json, on CUDA only)")
    options = parser.parse_args()
    why = no_device(options.device)
    if why:
        print(f"make gpu: {why}", file=sys.stderr)
        return 2
    out = options.out or (ROOT / "bench" / "results" / "gpu.json" if options.device == "cuda" else None)
    end_at = time.monotonic() + options.budget
    results: dict[str, Any] = {"device": options.device, "quick": options.quick, "parts": []}
    good = True
    for name in options.only:
        left = [PARTS[other] for other in options.only[options.only.index(name) :]]
        seconds = max(5.0, (end_at - time.monotonic() - _LEAST_S) * PARTS[name] / sum(left))
        if end_at - time.monotonic() < _LEAST_S:
            rows, end = [], {"part": name, "ended": "before it began: no time was left", "seconds": 0.0, "errors": ""}
        else:
            rows, end = run_part(name, options.device, seconds, quick=options.quick)
        show(name, rows, end)
        good = good and end["ended"] == "well" and all(row.get("outcome") != "failed" for row in rows)
        results["parts"].append({**end, "rows": rows})
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
