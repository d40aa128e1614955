"""The loader against torch's DataLoader and plain indexing, alternating in one process, and the cost of seeding.

Each round times one epoch of every way of reading 60000 samples of 784 floats in batches of 256, shuffled; the figures
are medians over rounds, and the best rounds of each: on a busy machine the best are more reliable. The costs of
seeding a sample and of switching the generators are timed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from truestep.loop.loading.loader import Loader
from truestep.loop.rng.seed import borrowed, mix, mix_each

SAMPLES, WIDTH, BATCH = 60_000, 784, 256


class Rows(Dataset):
    """The same tensors, sample by sample: the cost of a custom data set."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index], self.y[index]


def ways() -> dict[str, Callable[[int], Iterable[object]]]:
    """Return functions that yield the batches of an epoch."""
    x, y = torch.randn(SAMPLES, WIDTH), torch.randint(0, 10, (SAMPLES,))
    fast = Loader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    each = Loader(Rows(x, y), batch_size=BATCH, shuffle=True)

    def indexing(_: int) -> Iterable[object]:
        for part in torch.randperm(SAMPLES).split(BATCH):
            yield x[part], y[part]

    return {
        "Loader, in memory": fast.epoch,
        "plain indexing": indexing,
        "DataLoader, TensorDataset": lambda _: DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True),
        "Loader, sample by sample": each.epoch,
        "DataLoader, sample by sample": lambda _: DataLoader(Rows(x, y), batch_size=BATCH, shuffle=True),
    }


def epoch_us(batches: Iterable[object]) -> float:
    """Return the time of a batch, averaged over an epoch."""
    begun, count = time.perf_counter(), 0
    for _ in batches:
        count += 1
    return (time.perf_counter() - begun) / count * 1e6


def seeding_us() -> dict[str, float]:
    """Return the times of single parts of seeding."""

    def timed(call: Callable[[], object], times: int = 5000) -> float:
        begun = time.perf_counter()
        for _ in range(times):
            call()
        return (time.perf_counter() - begun) / times * 1e6

    def lend() -> None:
        with borrowed():
            pass

    with borrowed() as seed:
        each = timed(lambda: seed(7), 50_000)
    return {
        "seeding a sample": round(each, 2),
        "hashing a sample, alone": round(timed(lambda: mix(42, 3, 7), 50_000), 2),
        "hashing a sample, in a batch": round(timed(lambda: mix_each(42, 3, last=range(BATCH)), 500) / BATCH, 2),
        "lending the generators, a batch": round(timed(lend), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="write bench/results/loader.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    epochs = ways()
    taken: dict[str, list[float]] = {name: [] for name in epochs}
    for turn in range(options.rounds + 1):
        for name, epoch in epochs.items():
            us = epoch_us(epoch(turn))
            if turn:  # the first round warms up
                taken[name].append(us)
    torch_us = taken["DataLoader, TensorDataset"]
    print(f"{'epoch of 60000 x 784, batch 256':36}{'us a batch':>12}{'times faster':>14}{'best us':>10}{'of best':>9}")
    rows: list[dict[str, object]] = []
    for name, values in taken.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(torch_us, values, strict=True))
        row = {
            "way": name,
            "us_a_batch": round(statistics.median(values)),
            "ratio": round(ratio, 2),
            "best_us": round(min(values)),
            "ratio_of_best": round(min(torch_us) / min(values), 2),
        }
        rows.append(row)
        print(f"{name:36}{row['us_a_batch']:>12}{row['ratio']:>14}{row['best_us']:>10}{row['ratio_of_best']:>9}")
    parts = seeding_us()
    print()
    for name, us in parts.items():
        print(f"{name:36}{us:>9} us")
    if options.save:
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": options.threads,
        }
        path = Path(__file__).parent / "results" / "loader.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows, "seeding_us": parts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
