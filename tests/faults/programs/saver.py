"""Kills savers: children that save checkpoints in a loop are killed at random moments, and the folder is judged.

    python saver.py FOLDER KILLS SEED synchronous|asynchronous

A child writes the number of each finished save to a pipe. After each kill nothing finished may be lost, half deleted or
damaged. Prints the observations as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import torch

from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints

torch.set_num_threads(1)


def metric_of(step):
    """The same for every save of a step, without order."""
    return (step * 2654435761) % 1000 / 1000


def save_for_ever(folder, pipe, *, asynchronous):
    """Go on from the newest; every third save replaces the one before."""
    checkpoints = Checkpoints(folder, keep_last=2, asynchronous=asynchronous)
    newest = checkpoints.newest()
    step = newest.step if newest else 0
    model = {"weight": torch.randn(500_000), "bias": torch.randn(10)}
    state = {"moments": torch.randn(500_000), "seen": step}
    for turn in range(10**9):
        step += turn % 3 != 2
        saved = checkpoints.save(
            step,
            epoch=0,
            models={"model": model},
            state=state,
            rng={"torch": torch.get_rng_state()},
            metric=metric_of(step),
        )
        checkpoints.wait()
        os.write(pipe, f"{Checkpoint(saved).manifest.save} {step}\n".encode())


def one_kill(folder, wait_s, *, asynchronous):
    """Return the (save, step) of each save that a child finished before it was killed, `wait_s` after its first."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            save_for_ever(folder, writing, asynchronous=asynchronous)
        finally:
            os._exit(1)
    os.close(writing)
    told = os.read(reading, 64)
    assert told, "the child failed before its first save"
    time.sleep(wait_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 65536):
        told += more
    os.close(reading)
    return [tuple(map(int, line.split())) for line in told.decode().splitlines()]


def judge(folder, finished, best_metric, seen):
    """Assert that a folder is whole after a kill."""
    for path in folder.iterdir():
        kind = path.name.partition("-")[0]
        if kind == "step":
            Checkpoint(path).verify()  # raises where a final folder is half written or half deleted
        elif kind in (".tmp", ".trash"):
            seen[f"{kind[1:]} left behind"] += 1
    put_back = not (folder / f"step-{finished[-1][1]:06d}").exists()
    seen["final name was free"] += put_back
    checkpoints = Checkpoints(folder, keep_last=2)
    left = {path.name.partition("-")[0] for path in folder.iterdir()}
    assert left <= {"step", "last", "best"}, left
    newest, best = checkpoints.newest(), checkpoints.best()
    assert newest is not None
    assert newest.manifest.save >= finished[-1][0], (newest.manifest.save, finished[-1])
    assert newest.step >= finished[-1][1]
    assert best is not None
    assert best.metric <= best_metric, (best.metric, best_metric)


def main():
    folder, kills, seed, mode = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    chance = random.Random(seed)
    best_metric, seen = 1.0, Counter()
    for _ in range(kills):
        finished = one_kill(folder, chance.uniform(0, 0.15), asynchronous=mode == "asynchronous")
        best_metric = min(best_metric, *(metric_of(step) for _, step in finished))
        judge(folder, finished, best_metric, seen)
        seen["kills"] += 1
        seen["saves"] += len(finished)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
