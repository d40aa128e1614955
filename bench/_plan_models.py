"""Models of the benchmark of `truestep plan`, and programs that train them with each strategy.

python bench/_plan_models.py MODEL STRATEGY DEVICES: train for three steps and print the most bytes that torch held in
the last step, from the totals of its allocator. Under FSDP2 this is the first rank of torch's process group without
communication, since gloo makes copies and frees them at any time, which collectives of GPUs do not. The memory of
DistributedDataParallel does not depend on the number of ranks, so one is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from truestep.loop.ranks.sharding import units_of


class Layers(nn.Module):
    """A language model of transformer layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(2000, 256)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True) for _ in range(6)
        )
        self.head = nn.Linear(256, 2000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(wide, wide, 3, padding=1), nn.Conv2d(wide, wide, 3, padding=1)
        self.norm = nn.BatchNorm2d(wide)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def mlp() -> nn.Module:
    """Five wide layers on a small batch: state dominates."""
    inner = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), *inner, nn.Linear(1024, 10))


def transformer() -> nn.Module:
    """Six layers: activations dominate."""
    return Layers()


def cnn() -> nn.Module:
    """Six residual blocks with batch normalisation."""
    blocks = nn.ModuleList(Block(64) for _ in range(6))
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "mlp": (mlp, "64x256"),
    "transformer": (transformer, "8x128:int64"),
    "cnn": (cnn, "16x3x32x32"),
}
"""Factory and shape of the input, by name."""


def batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets."""
    if name == "transformer":
        tokens = torch.randint(0, 2000, (8, 128))
        return tokens, tokens.flatten()
    x = torch.randn(64, 256) if name == "mlp" else torch.randn(16, 3, 32, 32)
    return x, torch.randn(len(x), 10)


def loss(name: str, out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss: cross entropy of tokens, mean square otherwise."""
    if name == "transformer":
        return nn.functional.cross_entropy(out.flatten(0, 1), target)
    return (out - target).square().mean()


def train(name: str, strategy: str, stepped: Callable[[int], None]) -> None:
    """Train for three steps.

    Args:
        name: key of `MODELS`.
        strategy: "single", "DDP" or "FSDP2".
        stepped: called before each step, and after the last.
    """
    torch.manual_seed(0)
    model: nn.Module = MODELS[name][0]()
    if strategy == "FSDP2":
        for unit in units_of(model, None):
            fully_shard(model.get_submodule(unit))
        fully_shard(model)
    elif strategy == "DDP":
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for step in range(3):
        stepped(step)
        x, target = batch(name)
        optimizer.zero_grad()
        loss(name, model(x), target).backward()
        optimizer.step()
    stepped(3)


def main(name: str, strategy: str, devices: int) -> None:
    """Train under torch's profiler, and print the most bytes held in the last step."""
    from truestep.experiments.instruments.profiling.memory import allocations

    if strategy == "FSDP2":
        torch.distributed.init_process_group("fake", rank=0, world_size=devices, store=FakeStore())
    elif strategy == "DDP":
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    profiler = torch.profiler.profile(profile_memory=True)
    profiler.start()

    def stepped(step: int) -> None:
        with torch.profiler.record_function(f"step {step}"):
            pass

    train(name, strategy, stepped)
    profiler.stop()
    tree = list(profiler.profiler.kineto_results.experimental_event_tree())
    (start,) = [event.start_time_ns for event in tree if event.name == "step 2"]
    (end,) = [event.start_time_ns for event in tree if event.name == "step 3"]
    print("peak", max(note.total for note in allocations(tree)["cpu"] if start <= note.time < end), flush=True)
    if strategy != "single":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        train(sys.argv[1], "single", lambda step: None)
