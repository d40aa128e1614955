"""Supervised against plain steps, alternating in one process: one table of ratios and absolute costs.

Each round times a block of plain steps and a block of supervised ones of the same loop; the ratio is the median over
rounds of one round's two figures, so that a busy machine slows both. Close reading (at sampled steps) is timed apart.
The last column counts TrueStep's functions that a step enters, which no other program affects.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import torch
from torch import nn

import truestep
from truestep.probes import Listener, Scene, all_probes
from truestep.rules import all_rules
from truestep.supervision.judge import Judge
from truestep.supervision.stream import EventStream

DATA = Path(os.environ.get("TRUESTEP_DATA", "../shared/data"))
Loop = Callable[[int], None]


def tiny() -> Loop:
    """An MLP 16-32-1 on batches of 32: the smallest step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 16), torch.randn(32, 1)
    return _loop(model, optimizer, nn.MSELoss(), x, y)


def millisecond() -> Loop:
    """An MLP with a step of about a millisecond on this machine."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(128, 64), torch.randint(0, 10, (128,))
    return _loop(model, optimizer, nn.CrossEntropyLoss(), x, y)


def clipped() -> Loop:
    """The step of about a millisecond, with clipping and a schedule."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
    criterion = nn.CrossEntropyLoss()
    x, y = torch.randn(128, 64), torch.randint(0, 10, (128,))

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    return steps


def cnn(*, compiled: bool = False) -> Loop:
    """A small CNN on FashionMNIST, batches of 64."""
    torch.manual_seed(0)
    path = DATA / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    if path.exists():
        with gzip.open(path) as file:
            raw = bytearray(file.read(16 + 64 * 784))
        x = torch.frombuffer(raw, dtype=torch.uint8, offset=16).reshape(64, 1, 28, 28).float() / 255
    else:
        x = torch.rand(64, 1, 28, 28)
    y = torch.randint(0, 10, (64,))
    model: nn.Module = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(800, 10),
    )  # fmt: skip
    return _loop(model, torch.optim.SGD(model.parameters(), lr=0.05), nn.CrossEntropyLoss(), x, y, compiled=compiled)


def transformer(*, compiled: bool = False) -> Loop:
    """Two encoder layers of width 64, sequences of 32, batches of 16."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(100, 64)
            layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(64, 100)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.encoder(self.embed(tokens))).transpose(1, 2)

    model = Net()
    tokens = torch.randint(0, 100, (16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _loop(model, optimizer, nn.CrossEntropyLoss(), tokens, tokens.roll(-1, 1), compiled=compiled)


def _loop(model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, x, y, *, compiled=False) -> Loop:
    called = torch.compile(model, backend="inductor" if compiled == "inductor" else "aot_eager") if compiled else model

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            loss = criterion(called(x), y)
            loss.backward()
            optimizer.step()

    return steps


class Supervision:
    """Probes that can be installed and removed around the same loop, past the first sampled steps."""

    def __init__(self) -> None:
        self.judge = Judge(all_rules().values())
        self.stream = EventStream(self.judge)
        self.scene = Scene(torch, Listener(self.stream.take, self.stream.step, self.stream.relieve))
        self.scene.coast.repeating, self.scene.coast.passed = self.stream.repeating, self.stream.passed
        self.probes = [cls(self.scene) for cls in all_probes()]

    def __enter__(self) -> Supervision:
        self.stack = ExitStack()
        for probe in self.probes:
            known = dict(vars(probe))
            probe.install(self.stack)
            vars(probe).update(known)  # its state at the removal: a long run, not a beginning
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()


def compare(name: str, loop: Loop, rounds: int, seconds: float) -> dict[str, object]:
    """Time a loop plain and supervised in turns."""
    supervision = Supervision()
    loop(20)
    with supervision:
        loop(80)  # past the first calls of each line, which are observed in full
    sampling = supervision.scene.sampling
    sampling.step = 1001  # past the steps that are read closely
    sampling.given_up = "timing"  # and no other one comes
    sampling.on = False
    supervision.scene.ledger.refresh()
    with supervision:
        loop(100)  # until the steps coast
    begun = time.perf_counter()
    loop(20)
    block = max(5, int(seconds / ((time.perf_counter() - begun) / 20)))
    ratios, plains, costs = [], [], []
    for turn in range(rounds):
        plain = _time(loop, block) if turn % 2 else 0.0
        with supervision:
            _warm(loop, supervision)
            supervised = _time(loop, block)
        plain = plain or _time(loop, block)
        ratios.append(supervised / plain)
        plains.append(plain)
        costs.append(supervised - plain)
    with supervision:
        _warm(loop, supervision)
        calls = _calls(loop, block)
    errors = [*supervision.scene.errors, *supervision.judge.errors]
    return {
        "loop": name,
        "plain_us": round(statistics.median(plains) * 1e6, 1),
        "cost_us": round(statistics.median(costs) * 1e6, 1),
        "ratio": round(statistics.median(ratios), 4),
        "ratio_of_best": round(min(p + c for p, c in zip(plains, costs, strict=True)) / min(plains), 4),
        "calls": calls,
        "rounds": rounds,
        "steps_a_round": block,
        "errors": len(errors),
    }


def _warm(loop: Loop, supervision: Supervision) -> None:
    """Repeat the step until it coasts again, as in a long run: the plain steps in between were not observed."""
    for _ in range(300):
        loop(1)
        if supervision.scene.coast.on:
            return


def _time(loop: Loop, block: int) -> float:
    loop(10)
    begun = time.process_time()  # processor time: other programs are not counted
    loop(block)
    return (time.process_time() - begun) / block


def _calls(loop: Loop, block: int) -> float:
    """Return the number of functions of TrueStep that a step enters, the mean over a block."""
    package, entered = str(Path(truestep.__file__).parent), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal entered
        entered += event == "call" and frame.f_code.co_filename.startswith(package)

    sys.setprofile(count)
    try:
        loop(block)
    finally:
        sys.setprofile(None)
    return round(entered / block, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of one timed block")
    parser.add_argument("--only", nargs="*", help="names of loops")
    parser.add_argument("--save", action="store_true", help="write bench/results/step_cost.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    loops: dict[str, Callable[[], Loop]] = {
        "tiny MLP": tiny,
        "1 ms MLP": millisecond,
        "1 ms MLP, clipped and scheduled": clipped,
        "CNN on FashionMNIST": cnn,
        "CNN, compiled": lambda: cnn(compiled=True),
        "transformer": transformer,
        "transformer, compiled": lambda: transformer(compiled=True),
    }
    rows = []
    print(f"{'loop':33}{'plain us':>10}{'cost us':>10}{'ratio':>9}{'of best':>9}{'calls':>8}")
    for name, build in loops.items():
        if options.only and name not in options.only:
            continue
        row = compare(name, build(), options.rounds, options.seconds)
        rows.append(row)
        print(
            f"{name:33}{row['plain_us']:>10}{row['cost_us']:>10}{row['ratio']:>9}{row['ratio_of_best']:>9}{row['calls']:>8}"
            + (" errors!" * bool(row["errors"]))
        )
    if options.save:
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": 1,
        }
        path = Path(__file__).parent / "results" / "step_cost.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
