"""FashionMNIST to 88.3 % of the test set: the lab's own script against the toolkit, same model, in turns.

Each program runs in a separate process. Its time begins after `import torch`, includes reading the files, training and
a pass over the test set after each epoch, and ends at the first pass with at least `--goal` correct. The time of
the process counts all its threads; on a busy machine it is more reliable than wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from _lab_programs import PROGRAMS

DATA = Path(os.environ.get("TRUESTEP_DATA", "../shared/data")) / "fashion-mnist"


def one(program: str, seed: int, goal: float, threads: int) -> dict[str, object]:
    """Run one program in this process, and return its times."""
    torch.set_num_threads(threads)
    wall, process = time.perf_counter(), time.process_time()
    accuracies: list[float] = []
    for accuracy in PROGRAMS[program](DATA, seed):
        accuracies.append(round(accuracy, 4))
        if accuracy >= goal:
            break
    return {
        "program": program,
        "seed": seed,
        "wall_s": round(time.perf_counter() - wall, 2),
        "process_s": round(time.process_time() - process, 2),
        "reached": accuracies[-1] >= goal,
        "accuracies": accuracies,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--goal", type=float, default=0.883)
    parser.add_argument("--one", nargs=2, metavar=("PROGRAM", "SEED"), help="run one program, and print it as JSON")
    parser.add_argument("--save", action="store_true", help="write bench/results/lab.json")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]), options.goal, options.threads)))
        return
    runs = []
    print(f"{'':18}{'seed':>5}{'wall s':>9}{'process s':>11}{'epochs':>8}{'accuracy':>10}{'load':>7}")
    for seed in range(options.seeds):
        for program in PROGRAMS:
            command = [sys.executable, __file__, "--one", program, str(seed)]
            command += ["--goal", str(options.goal), "--threads", str(options.threads)]
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            measured["load"] = round(os.getloadavg()[0], 1)
            runs.append(measured)
            accuracy = measured["accuracies"][-1] if measured["reached"] else float("nan")
            print(
                f"{program:18}{seed:>5}{measured['wall_s']:>9.1f}{measured['process_s']:>11.1f}"
                f"{len(measured['accuracies']):>8}{accuracy:>10.2%}{measured['load']:>7}",
                flush=True,
            )
    rows = [summary(program, runs) for program in PROGRAMS]
    print()
    for row in rows:
        print(f"{row['program']:18} {row['process_s']:6.1f} s of the process, {row['times_faster']:5.1f} times faster; "
              f"wall {row['wall_s']:6.1f} s, {row['wall_times_faster']:5.1f}")  # fmt: skip
    if options.save:
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": options.threads,
        }
        path = Path(__file__).parent / "results" / "lab.json"
        path.write_text(
            json.dumps({"machine": machine, "goal": options.goal, "rows": rows, "runs": runs}, indent=1) + "\n"
        )


def summary(program: str, runs: list[dict]) -> dict:
    """Return the medians of one program, and how many times faster than the first one it is, seed by seed."""
    first = next(iter(PROGRAMS))
    own = {run["seed"]: run for run in runs if run["program"] == program}
    theirs = {run["seed"]: run for run in runs if run["program"] == first}
    row: dict = {"program": program, "all_reached": all(run["reached"] for run in own.values())}
    for figure, ratio in (("process_s", "times_faster"), ("wall_s", "wall_times_faster")):
        row[figure] = round(statistics.median(run[figure] for run in own.values()), 2)
        row[ratio] = round(statistics.median(theirs[seed][figure] / own[seed][figure] for seed in own), 2)
    return row


if __name__ == "__main__":
    main()
