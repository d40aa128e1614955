"""Types and place of divided parameters: trainings on the ranks of one group, `FOLDER`; prints the results of each as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from truestep import Run

torch.set_num_threads(1)
GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(200, 6, generator=GENERATOR)
Y = (X @ torch.randn(6, 4, generator=GENERATOR)).argmax(1)
DATA = TensorDataset(X, Y)


class Block(nn.Module):
    """A residual block; the gate is used in every third call only."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear, self.gate = nn.BatchNorm1d(16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.linear(torch.relu(self.norm(x)))
        return x + (y * self.gate(x).sigmoid() if self.calls % 3 == 0 else y)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.Sequential(Block(), Block()), nn.LayerNorm(16), nn.Linear(16, 4))


def train(strategy: str = "fsdp", left: bool = False, **settings: Any) -> dict[str, Any]:
    """Return results of a training; with `left`, each epoch ends in an open window."""
    with Run(seed=3, max_epochs=8, device="cpu", watch=False, progress=False, strategy=strategy, **settings) as run:
        train, val = run.loader(DATA, 8 // run.world_size, shuffle=True), run.loader(DATA, 100)
        net = run.model(network())
        optimizer = run.optimizer(torch.optim.AdamW(net.parameters(), lr=0.01))
        ema = run.ema(net, decay=0.9)
        for _ in run.epochs():
            for number, (x, y) in enumerate(run.train(train, net)):
                with run.autocast():
                    out = net(x)
                    loss = nn.functional.cross_entropy(out, y)
                run.step(loss)
                if left and number == 6:
                    break
            if left:
                run.flush()
            with run.evaluate(net, ema.model):
                accuracy, mean = run.mean("accuracy"), run.mean("loss")
                for x, y in run.batches(val):
                    scores = net(x)
                    mean.update(nn.functional.cross_entropy(scores, y), len(x))
                    accuracy.update(ema.model(x).argmax(1) == y)
            run.log({"loss": mean})
        tensors = [tensor for state in optimizer.state.values() for tensor in state.values() if tensor.dim()]
        return {
            "weights": [float(value) for p in net.parameters() for value in whole(p).reshape(-1)[:4]],
            "loss": float(mean),
            "accuracy": float(accuracy),
            "output": str(out.dtype),
            "stored": sorted({str(tensor.dtype) for tensor in (*net.parameters(), *tensors)}),
            "steps": run.global_step,
        }


def whole(tensor: Any) -> torch.Tensor:
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach()


CASES: dict[str, dict[str, Any]] = {
    "ddp": {"strategy": "ddp"},
    "fsdp": {},
    "offloaded": {"cpu_offload": True},
    "bf16": {"param_dtype": "bf16"},
    "bf16 everywhere": {"param_dtype": "bf16", "reduce_dtype": "bf16", "precision": "bf16", "cpu_offload": True},
    "sums in bf16": {"reduce_dtype": "bf16"},
    "windows of ddp": {"strategy": "ddp", "accumulate": 3},
    "windows offloaded": {"cpu_offload": True, "accumulate": 3},
    "windows in bf16": {"param_dtype": "bf16", "accumulate": 3, "clip_norm": 1.0},
    "windows that are left": {"param_dtype": "bf16", "cpu_offload": True, "accumulate": 3, "left": True},
    "windows that ddp leaves": {"strategy": "ddp", "accumulate": 3, "left": True},
}

if __name__ == "__main__":
    distributed: Any = torch.distributed
    distributed.init_process_group("gloo")
    results = {name: train(**case) for name, case in CASES.items()}
    if distributed.get_rank() == 0:
        sys.stdout.write(json.dumps(results) + "\n")
    distributed.destroy_process_group()
