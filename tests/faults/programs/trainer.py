"""Kills trainings: a child that trains is killed at random moments and started again until it is done.

    python trainer.py FOLDER KILLS SEED [options of tests/loop/programs/training.py]

Trainings follow one another, each in a new folder, until so many kills have hit. After each kill the lock is
free and no checkpoint that was there is lost; in the end weights and log are those of an uninterrupted training,
and no worker lives on. Prints the observations as JSON.
"""

import ctypes
import importlib.util
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch

from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk.lock import FolderLock
from truestep.loop.checkpoint.listing import listed

BECOME_REAPER = 36  # prctl(2): workers of a killed parent become children of this process
PATIENCE_S = 60
torch.set_num_threads(1)


def load_training():
    path = Path(__file__).parents[2] / "loop" / "programs" / "training.py"
    spec = importlib.util.spec_from_file_location("training_program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_program"] = module
    spec.loader.exec_module(module)
    return module


def start(training, arguments, log):
    """Train in a child, which leads a process group; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        training.main(arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child, wait_s):
    """Return the status of a child that ends within that time, else None."""
    until = time.monotonic() + wait_s
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(0.002)


def reap():
    """Wait until no process is left of any training; return how many there were."""
    count, until = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count
        count += pid > 0
        time.sleep(0.01)
    raise AssertionError("workers of a killed training live on")


def judge(out, newest, seen):
    """Assert that a folder is free and lost nothing; return the number of its newest save."""
    with FolderLock(out):
        checkpoints = out / "checkpoints"
        if not checkpoints.exists():
            assert newest == 0
            return 0
        kinds = {path.name.partition("-")[0] for path in checkpoints.iterdir()}
        seen["in a save"] += bool(kinds & {".tmp", ".trash"})
        found = Checkpoints(checkpoints).newest()
        assert found is not None or newest == 0
        number = 0 if found is None else found.manifest.save
        assert number >= newest, (number, newest)
        return number


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def outcome(out):
    return torch.load(out / "final.pt", weights_only=True), (out / "metrics.jsonl").read_bytes()


def newest_save(out):
    return max((found.manifest.save for found in listed(out / "checkpoints")), default=0)


def wait_for_save(child, out, newest):
    """Return when a child has saved since, or has ended."""
    alive = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while newest_save(out) <= newest and os.waitid(os.P_PID, child, alive) is None:
        time.sleep(0.002)


def train_with_kills(training, out, options, chance, lasts_s, seen):
    """Start and kill a training until one reaches its end."""
    newest, log = 0, out.with_suffix(".log")
    while True:
        child = start(training, [str(out), *options], log)
        if chance.random() < 0.5:  # a moment after a checkpoint of this life, however slow the machine is by now
            wait_for_save(child, out, newest)
            status = ended(child, chance.uniform(0.0, 0.3) * lasts_s)
        else:
            status = ended(child, chance.uniform(0.02, 1.0) * lasts_s)
        if status is not None:
            assert status == 0, log.read_text()
            return
        before = newest_save(out)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
            continue  # it ended in the meantime; its work is judged when it is resumed
        newest = judge(out, max(newest, before), seen)
        seen["kills"] += 1
        seen["resumed"] += newest > 0


def main():
    folder, kills, chance, options = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])), sys.argv[4:]
    ctypes.CDLL(None, use_errno=True).prctl(BECOME_REAPER, 1, 0, 0, 0)
    folder.mkdir(parents=True, exist_ok=True)
    training, seen = load_training(), Counter()
    begin = time.monotonic()
    status = ended(start(training, [str(folder / "whole"), *options], folder / "whole.log"), PATIENCE_S)
    assert status == 0, (folder / "whole.log").read_text()
    lasts_s = time.monotonic() - begin
    weights, lines = outcome(folder / "whole")
    while seen["kills"] < kills:
        out = folder / f"killed-{seen['trainings']}"
        train_with_kills(training, out, options, chance, lasts_s, seen)
        seen["trainings"] += 1
        ours, our_lines = outcome(out)
        assert our_lines == lines, f"{out}: other lines"
        assert same(ours, weights), f"{out}: other weights"
        seen["workers that ended by themselves"] += reap()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
