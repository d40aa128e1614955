"""Cost of `deterministic=True`: the same steps with and without it, in turns, in processor time."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from truestep.loop.rng.deterministic import deterministic

Step = Callable[[], None]


def convolutions() -> Step:
    """Two convolutions on images of 28 x 28, batches of 64."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 11 * 11, 10),
    )  # fmt: skip
    x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    return training(model, lambda: nn.functional.cross_entropy(model(x), y))


def embeddings() -> Step:
    """Sums of embeddings: their gradients are added up by index."""
    model = nn.Sequential(nn.EmbeddingBag(20_000, 64, mode="sum"), nn.Linear(64, 2))
    words, y = torch.randint(0, 20_000, (64, 40)), torch.randint(0, 2, (64,))
    return training(model, lambda: nn.functional.cross_entropy(model(words), y))


def scattered() -> Step:
    """Messages between nodes of a graph, added up by index: 200,000 of 32 numbers."""
    model = nn.Linear(32, 32)
    x, to = torch.randn(200_000, 32), torch.randint(0, 10_000, (200_000,))
    return training(model, lambda: torch.zeros(10_000, 32).index_add(0, to, model(x)).pow(2).mean())


def training(model: nn.Module, loss: Callable[[], torch.Tensor]) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def timed(step: Step, count: int, *, switched: bool) -> float:
    with deterministic(switched):
        step()
        begun = time.process_time()
        for _ in range(count):
            step()
        return (time.process_time() - begun) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", action="store_true", help="keep the numbers in bench/results/deterministic.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print(f"{'step':24} {'as it is':>10} {'deterministic':>14} {'ratio':>6}")
    for make in (convolutions, embeddings, scattered):
        torch.manual_seed(0)
        step = make()
        count = max(2, int(0.15 / timed(step, 2, switched=False)))
        pairs = [[timed(step, count, switched=on) for on in (False, True)] for _ in range(args.rounds)]
        plain, switched = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        rows.append({"step": make.__name__, "plain_us": round(plain), "us": round(switched), "ratio": round(ratio, 3)})
        print(f"{make.__name__:24} {plain:8.0f}us {switched:12.0f}us {ratio:6.2f}")
    if args.save:
        machine = {"torch": torch.__version__, "device": "cpu", "threads": 1}
        path = Path(__file__).parent / "results" / "deterministic.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
