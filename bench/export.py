"""Exports of models on real data to each format: time, size, and the largest difference from eager.

    python bench/export.py --save
    python bench/export.py --formats int8-pt2 int8-onnx --save
    python bench/export.py --scripts examples/digits_corrected.py --save

With int8, accuracy, latency and size before and after are measured, too. For scripts, these are the rows of int8 in
`truestep bench-inference`. The data are those of TRUESTEP_DATA. An export to AOTInductor compiles C++ for about half a
minute.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from _export_models import MODELS

from truestep.errors import TrueStepError
from truestep.export import export
from truestep.export.int8.table import verdict
from truestep.export.int8.wanted import Int8

RESULTS = Path(__file__).parent / "results" / "export.json"
FORMATS = ("pt2", "onnx", "aoti", "int8-pt2", "int8-onnx", "int8-aoti")
WAYS = ("int8", "int8 compiled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--scripts", nargs="+", default=(), help="only the latency of the models of these scripts")
    parser.add_argument("--save", action="store_true", help="keep the numbers in bench/results/export.json")
    args = parser.parse_args()
    folder = Path(os.environ.get("TRUESTEP_DATA", "data"))
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = [row for script in args.scripts for row in of_script(script)]
    if args.scripts:
        if args.save:
            save(rows)
        return
    print(f"{'model':26} {'format':9} {'time':>7} {'size':>9} {'calls':>5} {'difference':>11} {'relative':>9}")
    for name in args.models:
        make = MODELS[name]
        torch.manual_seed(0)
        trained = make(folder)
        for to in args.formats:
            with tempfile.TemporaryDirectory() as place:
                begun = time.perf_counter()
                row: dict[str, object] = {"model": name, "format": to}
                try:
                    found = export(
                        trained.model,
                        Path(place, "made"),
                        to=to.removeprefix("int8-"),
                        batches=trained.batches,
                        quantise=Int8(most_drop=1.0) if to.startswith("int8-") else None,
                    )
                except TrueStepError as error:
                    row["error"] = str(error)
                    print(f"{name:26} {to:9} {error}")
                else:
                    compared = found.comparison
                    row |= {
                        "seconds": round(time.perf_counter() - begun, 1),
                        "bytes": sum(path.stat().st_size for path in found.folder.iterdir()),
                        "calls": len(compared.rows),
                        "batch_sizes": sorted({one.size for one in compared.rows}),
                        "largest": compared.largest,
                        "relative": compared.relative,
                        "runtime": compared.runtime,
                        "inputs": found.config["inputs"],
                        "notes": list(found.notes),
                    }
                    if found.config["quantisation"] is not None:
                        row["quantisation"] = found.config["quantisation"]
                        print(verdict(found.config["quantisation"]))
                    print(
                        f"{name:26} {to:9} {row['seconds']:6} s {row['bytes']:9,} {row['calls']:5} "
                        f"{compared.largest:11.2g} {compared.relative:9.2g}"
                    )
                sys.stdout.flush()
                rows.append(row)
                if args.save:
                    save(rows)


def of_script(script: str) -> list[dict[str, object]]:
    """Return the rows of int8 in `truestep bench-inference` of a script, with one thread."""
    command = [sys.executable, "-m", "truestep", "bench-inference", "--threads", "1", "--only", ",".join(WAYS)]
    done = subprocess.run([*command, "--format", "json", script], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    rows: list[dict[str, object]] = []
    for way in WAYS:
        settings = [
            {"batch": one["batch"], "eager_s": one["rows"][0]["median_s"], "even": one["even"]} | row
            for one in found["settings"]
            for row in one["rows"]
            if row["name"] == way
        ]
        relative = found["relative_difference"].get(way)
        row = {"model": script, "format": way, "facts": found["facts"], "relative": relative, "latency": settings}
        rows.append(row | ({"error": found["failed"][way]} if way in found["failed"] else {}))
        print(json.dumps(row, indent=1))
    return rows


def save(rows: list[dict[str, object]]) -> None:
    """Write the rows, beside earlier ones of other models and formats."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    new = {(row["model"], row["format"]) for row in rows}
    merged = [row for row in kept if (row["model"], row["format"]) not in new] + rows
    order = [(name, to) for name in MODELS for to in FORMATS]
    merged.sort(key=lambda row: order.index(place) if (place := (row["model"], row["format"])) in order else len(order))
    machine = {"torch": str(torch.__version__), "python": platform.python_version(), "threads": 1}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": merged}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
