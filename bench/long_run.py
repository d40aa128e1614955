"""Memory and record over a million tiny steps under supervision: one table.

The resident memory is read after every tenth of the run; it must not grow after the first tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import torch

from truestep.config import Options
from truestep.supervision import Session


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--save", action="store_true", help="write bench/results/long_run.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(4, 2)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Options(record=Path(folder)))
        session.start()
        begun = time.process_time()
        print(f"{'steps':>10}{'resident MiB':>14}{'record bytes':>14}")
        for tenth in range(10):
            for _ in range(options.steps // 10):
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()
                optimizer.step()
            row = {
                "steps": (tenth + 1) * options.steps // 10,
                "resident_mib": round(resident_mib(), 1),
                "record_bytes": sum(path.stat().st_size for path in Path(folder).iterdir()),
            }
            rows.append(row)
            print(f"{row['steps']:>10}{row['resident_mib']:>14}{row['record_bytes']:>14}", flush=True)
        summary = session.stop()
        spent = time.process_time() - begun
    growth = rows[-1]["resident_mib"] - rows[0]["resident_mib"]
    print(f"growth after the first tenth: {growth:.1f} MiB; {spent / options.steps * 1e6:.0f} us a step, watched")
    print(f"findings: {len(summary.findings)}, errors: {len(summary.internal_errors)}, steps seen: {summary.steps}")
    if options.save:
        result = {"torch": torch.__version__, "growth_mib": round(growth, 1), "rows": rows}
        path = Path(__file__).parent / "results" / "long_run.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
