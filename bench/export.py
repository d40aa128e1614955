"""Exports of four models on real data to each format: time, size, and the largest difference from eager.

    python bench/export.py --save

The data are those of TRUESTEP_DATA. An export to AOTInductor compiles C++ for about half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import torch
from _export_models import MODELS

from truestep.errors import TrueStepError
from truestep.export import export

RESULTS = Path(__file__).parent / "results" / "export.json"
FORMATS = ("pt2", "onnx", "aoti")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--save", action="store_true", help="keep the numbers in bench/results/export.json")
    args = parser.parse_args()
    folder = Path(os.environ.get("TRUESTEP_DATA", "data"))
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    print(f"{'model':26} {'format':6} {'time':>7} {'size':>9} {'calls':>5} {'difference':>11} {'relative':>9}")
    for name in args.models:
        make = MODELS[name]
        torch.manual_seed(0)
        trained = make(folder)
        for to in args.formats:
            with tempfile.TemporaryDirectory() as place:
                begun = time.perf_counter()
                row: dict[str, object] = {"model": name, "format": to}
                try:
                    found = export(trained.model, Path(place, "made"), to=to, batches=trained.batches)
                except TrueStepError as error:
                    row["error"] = str(error)
                    print(f"{name:26} {to:6} {error}")
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
                    print(
                        f"{name:26} {to:6} {row['seconds']:6} s {row['bytes']:9,} {row['calls']:5} "
                        f"{compared.largest:11.2g} {compared.relative:9.2g}"
                    )
                sys.stdout.flush()
                rows.append(row)
                if args.save:
                    save(rows)


def save(rows: list[dict[str, object]]) -> None:
    """Write the rows, beside earlier ones of other models and formats."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    new = {(row["model"], row["format"]) for row in rows}
    merged = [row for row in kept if (row["model"], row["format"]) not in new] + rows
    order = [(name, to) for name in MODELS for to in FORMATS]
    merged.sort(key=lambda row: order.index((row["model"], row["format"])))
    machine = {"torch": str(torch.__version__), "python": platform.python_version(), "threads": 1}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": merged}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
