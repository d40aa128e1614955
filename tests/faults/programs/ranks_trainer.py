"""Kills ranks of trainings: one or all of them at random moments, and starts all again until the training is done.

    python ranks_trainer.py FOLDER KILLS SEED STRATEGY

Trainings of two ranks follow one another, each in a new folder, until so many kills have hit. After each kill the
other rank ends by itself, the lock is free and no checkpoint that was there is lost; in the end weights and log are
those of an uninterrupted training. Prints the observations as JSON.
"""

import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset
from trainer import PATIENCE_S, ended, judge, newest_save, outcome, same

from truestep import Run
from truestep.loop.ranks import heartbeat

RANKS = 2
heartbeat._SILENCE_S = 1.1  # a little more than two signs of life: hundreds of kills wait for it


def train(out, strategy):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(45, 6, generator=generator)
    settings = {"seed": 3, "max_epochs": 4, "device": "cpu", "watch": False, "progress": False}
    with Run(out=out, resume="auto", strategy=strategy, save_every_n_steps=2, accumulate=2, **settings) as run:
        train = run.loader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=2, shuffle=True)
        layers = nn.Linear(6, 16), nn.Dropout(0.2), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
        model = run.model(nn.Sequential(*layers))
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
        average = run.ema(model, 0.9)
        for epoch in run.epochs():
            error = run.mean("error")
            for inputs, targets in run.train(train, model):
                losses = (model(inputs) - targets).square()
                error.update(losses)
                run.step(losses.mean())
                time.sleep(0.002)
            run.log({"error": error})
            run.save(-epoch)
        final = {
            name: {key: getattr(value, "full_tensor", lambda value=value: value)() for key, value in state.items()}
            for name, state in (("model", model.state_dict()), ("average", average.model.state_dict()))
        }
        if run.is_main_process:
            torch.save(final, out / "fresh.pt")
            os.replace(out / "fresh.pt", out / "final.pt")
        run.barrier()


def start(out, strategy, log):
    """Train in children, one for each rank; return their numbers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child:
            children.append(child)
            continue
        code = 1
        try:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            train(out, strategy)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return children


def wait_for_save(child, out, newest):
    """Return when a training has saved since, or a rank has ended."""
    alive = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while newest_save(out) <= newest and os.waitid(os.P_PID, child, alive) is None:
        time.sleep(0.002)


def statuses(children):
    """Return the statuses of ranks that end by themselves."""
    found = []
    for child in children:
        status = ended(child, PATIENCE_S)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("a rank waits for one that was killed")
        found.append(status)
    return found


def train_with_kills(out, strategy, chance, lasts_s, seen):
    """Start and kill ranks until a training reaches its end."""
    newest, log = 0, out.with_suffix(".log")
    while True:
        children = start(out, strategy, log)
        if chance.random() < 0.6:  # a moment after a checkpoint of this life
            wait_for_save(children[0], out, newest)
            time.sleep(chance.uniform(0.0, 0.3) * lasts_s)
        else:
            time.sleep(chance.uniform(0.02, 1.0) * lasts_s)
        victims = children if chance.random() < 0.4 else [chance.choice(children)]
        before = newest_save(out)
        for child in victims:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        found = statuses(children)
        hit = found.count(-signal.SIGKILL)
        if found == [0] * RANKS:
            return
        if not hit:
            assert "EADDRINUSE" in log.read_text(), log.read_text()[-4000:]
            continue
        newest = judge(out, max(newest, before), seen)
        seen["kills"] += 1
        seen["of one rank"] += hit < RANKS
        seen["named"] += hit < RANKS and "did not answer: killed, or stopped" in log.read_text()
        seen["resumed"] += newest > 0


def main():
    folder, kills, chance, strategy = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])), sys.argv[4]
    folder.mkdir(parents=True, exist_ok=True)
    seen = Counter()
    begin = time.monotonic()
    assert statuses(start(folder / "whole", strategy, folder / "whole.log")) == [0] * RANKS, (
        folder / "whole.log"
    ).read_text()
    lasts_s = time.monotonic() - begin
    weights, lines = outcome(folder / "whole")
    while seen["kills"] < kills:
        out = folder / f"killed-{seen['trainings']}"
        train_with_kills(out, strategy, chance, lasts_s, seen)
        seen["trainings"] += 1
        ours, our_lines = outcome(out)
        assert our_lines == lines, f"{out}: other lines"
        assert same(ours, weights), f"{out}: other weights"
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
