"""Time that a training on several ranks waits for a checkpoint, and time until a resumed one takes its first step.

Processes of this machine over gloo, one thread each. The stall is the time between the bodies of two steps with a save
between them, without the median of those without one; that of the slowest rank. The time to resume is that from
`Run(resume="auto")` to the first body; beside it that of a new run of the same program. The start of the processes
and their imports are in neither.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import shutil
import socket
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from truestep import Run

WIDTH = 1024
EVERY = 4
"""Steps between two saves."""
WAYS = [("auto", 1, False), ("ddp", 2, False), ("ddp", 2, True), ("fsdp", 2, False), ("fsdp", 2, True)]
"""Strategy, number of ranks, and whether checkpoints are written in the background."""


def network(megabytes: int) -> nn.Sequential:
    """Return a model of that many MB of weights."""
    count = max(2, megabytes * 10**6 // (4 * WIDTH * WIDTH))
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(count)))


def train(
    out: str, strategy: str, steps: int, megabytes: int, **settings: Any
) -> tuple[float, list[float], list[float]]:
    """Return seconds until the first body, between bodies with a save, and between bodies without one."""
    x = torch.randn(2, WIDTH)
    begun = time.perf_counter()
    quiet = {"watch": False, "progress": False, "alerts": False, "device": "cpu"}
    with Run(out=out, strategy=strategy, max_steps=steps, keep_last=1, **quiet, **settings) as run:
        model = run.model(network(megabytes))
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-4))
        first, saved, plain, ended = 0.0, [], [], 0.0
        for step in run.steps():
            now = time.perf_counter()
            first = first or now - begun
            if ended:
                (saved if step % EVERY == 0 else plain).append(now - ended)
            run.step(model(x).square().mean())
            if (step + 1) % EVERY == 0:
                run.save()
            run.barrier()
            ended = time.perf_counter()
    return first, saved, plain


def measure(rank: int, options: argparse.Namespace, way: tuple[str, int, bool], out: str) -> None:
    """Measure one way in one of the processes; each writes its times."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    strategy, ranks, asynchronous = way
    if ranks > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
        torch.distributed.init_process_group("gloo")
    found: dict[str, list[float]] = {"stall": [], "new": [], "resume": []}
    for turn in range(options.rounds + 1):
        folder = str(Path(out, f"run-{turn}"))
        steps, size = EVERY * 4 + 1, options.megabytes
        with contextlib.redirect_stderr(io.StringIO()):
            new, saved, plain = train(folder, strategy, steps, size, asynchronous=asynchronous)
            resumed, _, _ = train(folder, strategy, steps + 1, size, asynchronous=asynchronous, resume="auto")
        if ranks > 1:
            torch.distributed.barrier()
        shutil.rmtree(folder, ignore_errors=True)
        if turn == 0:  # imports, and the first files
            continue
        found["stall"] += [time - statistics.median(plain) for time in saved[1:]]
        found["new"].append(new)
        found["resume"].append(resumed)
    Path(out, f"rank-{rank}.json").write_text(json.dumps(found))
    if ranks > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def row_of(options: argparse.Namespace, way: tuple[str, int, bool]) -> dict[str, Any]:
    """Return the medians of one way, of the slowest rank at each moment."""
    strategy, ranks, asynchronous = way
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as out:
        torch.multiprocessing.spawn(measure, args=(options, way, out), nprocs=ranks)
        read = [json.loads(Path(out, f"rank-{rank}.json").read_text()) for rank in range(ranks)]
    slowest = {key: [max(times) for times in zip(*(one[key] for one in read), strict=True)] for key in read[0]}
    medians = {f"{key}_ms": round(statistics.median(times) * 1e3, 1) for key, times in slowest.items()}
    return {"strategy": strategy, "ranks": ranks, "asynchronous": asynchronous, **medians}


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="weights of the model; AdamW adds twice that")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="write bench/results/checkpoint_of_ranks.json")
    options = parser.parse_args()
    print(f"{'strategy':10}{'ranks':>6}{'writes':>14}{'stall ms':>10}{'new ms':>9}{'resume ms':>11}")
    rows = []
    for way in WAYS:
        rows.append(row := row_of(options, way))
        writes = "background" if row["asynchronous"] else "at once"
        times = f"{row['stall_ms']:>10.0f}{row['new_ms']:>9.0f}{row['resume_ms']:>11.0f}"
        print(f"{row['strategy']:10}{row['ranks']:>6}{writes:>14}{times}", flush=True)
    if options.save:
        machine = {"torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count()}
        what = {"weights_mb": options.megabytes, "rounds": options.rounds, "saves_a_round": 3}
        path = Path(__file__).parent / "results" / "checkpoint_of_ranks.json"
        path.write_text(json.dumps({"machine": machine, **what, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
