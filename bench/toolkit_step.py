"""Cost of a step of the toolkit over a hand-written loop, next to other frameworks, alternating in one process.

An MLP 16-32-1 on batches of 32, one thread, processor time. Every round runs every loop once; the cost of a
loop is the median over rounds of the difference to the step of its twin, the hand-written loop, in the same round.
Before that, every loop trains once and its weights are compared with those of its twin: otherwise the cost is
meaningless.

Batches are prepared, except in the rows "loader": data in memory, read by `run.loader` on one side and by indexing
on the other. With everything on, gradients are clipped, a schedule moves every step and the loss is logged: TrueStep
keeps every value, the others every 50th. Supervision is timed past its first 500 steps, some of which it reads closely.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import itertools
import json
import logging
import os
import platform
import statistics
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from _steps import MAX_NORM, Clock, Loop, Task, net, rising, sgd
from torch import nn
from torch.utils.data import TensorDataset

import truestep

TARGETS_US = {"off": 50, "on": 150}
mse = nn.functional.mse_loss


def plain_off(task: Task) -> nn.Module:
    model = net()
    optimizer = sgd(model)
    for x, y in task.ready():
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
    return model


def plain_indexing(task: Task) -> nn.Module:
    model = net()
    optimizer = sgd(model)
    xs, ys = task.samples()
    for part in task.clock.over(torch.arange(len(xs)).split(32)):
        x, y = xs[part], ys[part]
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
    return model


def plain_on(task: Task) -> nn.Module:
    model = net()
    optimizer = sgd(model)
    scheduler = rising(optimizer)
    for x, y in task.ready():
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        scheduler.step()
    return model


def steps_off(task: Task) -> nn.Module:
    with truestep.Run(max_steps=task.clock.steps + 1, watch=False) as run:
        model = run.model(net())
        run.optimizer(sgd(model))
        for (x, y), _ in zip(task.ready(), run.steps(None, model), strict=False):
            with run.autocast():
                loss = mse(model(x), y)
            run.step(loss)
    return model


def train_off(task: Task) -> nn.Module:
    with truestep.Run(max_epochs=1, watch=False) as run:
        loader = run.loader(TensorDataset(*task.samples()), batch_size=32)
        model = run.model(net())
        run.optimizer(sgd(model))
        for x, y in task.clock.over(run.train(loader, model)):
            with run.autocast():
                loss = mse(model(x), y)
            run.step(loss)
    return model


def steps_on(task: Task, *, watch: bool) -> nn.Module:
    out = task.folder / "run"
    with truestep.Run(max_steps=task.clock.steps + 1, out=out, clip_norm=MAX_NORM, watch=watch) as run:
        model = run.model(net())
        optimizer = run.optimizer(sgd(model))
        run.scheduler(rising(optimizer), every="step")
        for (x, y), _ in zip(task.ready(), run.steps(None, model), strict=False):
            with run.autocast():
                loss = mse(model(x), y)
            run.step(loss)
            run.log({"loss": loss})
    return model


@dataclass
class Way:
    """One loop, its twin, and the measurements."""

    name: str
    on: bool
    loop: Loop
    twin: str = ""
    warm: int = 100

    @property
    def key(self) -> str:
        return f"{'on' if self.on else 'off'}: {self.name}"


def ways(*, peers: bool) -> list[Way]:
    """Return every loop, hand-written ones first."""
    off, indexing, on = "off: by hand", "off: by hand, indexing", "on: by hand"
    made = [
        Way("by hand", False, plain_off),
        Way("by hand, indexing", False, plain_indexing),
        Way("TrueStep", False, steps_off, off),
        Way("TrueStep, loader", False, train_off, indexing),
    ]
    rest = [
        Way("by hand", True, plain_on),
        Way("TrueStep", True, functools.partial(steps_on, watch=False), on),
        Way("TrueStep, watch=True", True, functools.partial(steps_on, watch=True), on, warm=520),
    ]
    if peers:
        from _peer_steps import PEERS_OFF, PEERS_ON

        made += [Way(name, False, loop, off) for name, loop in PEERS_OFF.items()]
        rest += [Way(name, True, loop, on) for name, loop in PEERS_ON.items()]
    return made + rest


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the output of frameworks."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def trained(way: Way, warm: int, count: int) -> tuple[float, torch.Tensor]:
    """Run a loop once; return the time of a step in us, and its weights."""
    clock = Clock(warm, count)
    with tempfile.TemporaryDirectory() as folder, quiet():
        model = way.loop(Task(clock, Path(folder)))
    return clock.step_us, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def differences(made: list[Way]) -> dict[str, float]:
    """Train 120 steps with every loop; return the largest difference from the twin's weights."""
    weights = {way.key: trained(way, 0, 120)[1] for way in made}
    return {way.key: (weights[way.key] - weights[way.twin]).abs().max().item() for way in made if way.twin}


def measured(made: list[Way], rounds: int, count: int) -> dict[str, list[float]]:
    """Return the times of a step of each loop, by round; every round starts with another loop."""
    times: dict[str, list[float]] = {way.key: [] for way in made}
    for turn in range(rounds):
        begin = turn * len(made) // rounds
        for way in itertools.chain(made[begin:], made[:begin]):
            times[way.key].append(trained(way, way.warm, count)[0])
    return times


def table(made: list[Way], times: dict[str, list[float]], differ: dict[str, float]) -> list[dict[str, object]]:
    """Print the table; return its rows."""
    rows: list[dict[str, object]] = []
    print(f"{'':7}{'loop':28}{'step us':>10}{'over by hand':>14}{'of best':>9}{'differs':>10}")
    for way in made:
        own = times[way.key]
        row: dict[str, object] = {
            "on": way.on,
            "loop": way.name,
            "step_us": round(statistics.median(own), 1),
            "best_us": round(min(own), 1),
        }
        text = f"{'on' if way.on else 'off':7}{way.name:28}{row['step_us']:>10}"
        if way.twin:
            twin = times[way.twin]
            row["twin"] = way.twin
            row["over_us"] = round(statistics.median(a - b for a, b in zip(own, twin, strict=True)), 1)
            row["over_of_best_us"] = round(min(own) - min(twin), 1)
            row["differs"] = differ[way.key]
            text += f"{row['over_us']:>14}{row['over_of_best_us']:>9}{differ[way.key]:>10.1g}"
            if way.name.startswith("TrueStep"):
                target = TARGETS_US["on" if way.on else "off"]
                text += f"  (aim: {target})"
        print(text)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=500, help="timed steps of a loop in one round")
    parser.add_argument("--alone", action="store_true", help="without the other frameworks")
    parser.add_argument("--only", nargs="*", help="names of loops")
    parser.add_argument("--save", action="store_true", help="write bench/results/toolkit_step.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    with quiet():
        made = ways(peers=not options.alone)
    for name in ("lightning", "lightning.pytorch", "lightning.fabric", "ignite", "transformers", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if options.only:
        made = [way for way in made if not way.twin or way.name in options.only]
    differ = differences(made)
    times = measured(made, options.rounds, options.steps)
    rows = table(made, times, differ)
    if options.save:
        names = ("lightning", "accelerate", "pytorch-ignite", "transformers", "skorch")
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": 1,
            "versions": {name: version(name) for name in names},
        }
        what = {"rounds": options.rounds, "steps_a_round": options.steps}
        path = Path(__file__).parent / "results" / "toolkit_step.json"
        path.write_text(json.dumps({"machine": machine, **what, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
