"""Time of a step on two ranks: the toolkit next to DistributedDataParallel and `fully_shard` by hand, and frameworks.

Two processes of this machine over gloo, one thread each, wall time. In each round every loop trains once, in the same
processes; the ratio of a loop is the median over rounds of its step by that of its twin, the loop by hand, in the same
round. Before that, every loop trains once, and its weights are compared with those of its twin.

The models: an MLP of three layers (a step of about 3 ms), and one of eight wide layers (about 15 ms).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import platform
import socket
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import truestep

WIDTHS = {"small": (256, 3), "large": (512, 8)}
"""Width and number of the layers, by name of the model."""
WARM = 10
mse = nn.functional.mse_loss


@dataclass
class Task:
    """One training of one model: `steps` batches of this rank, timed after the first `WARM`."""

    model: str
    steps: int
    seconds: float = 0.0

    def net(self) -> nn.Sequential:
        torch.manual_seed(0)
        width, layers = WIDTHS[self.model]
        return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        made = torch.Generator().manual_seed(dist.get_rank())
        width = WIDTHS[self.model][0]
        x, y = torch.randn(32, width, generator=made), torch.randn(32, width, generator=made)
        for step in range(self.steps + 1):
            if step == WARM:
                begun = time.perf_counter()
            elif step == self.steps:
                self.seconds = (time.perf_counter() - begun) / (self.steps - WARM)
                return
            yield x, y


Loop = Callable[[Task], nn.Module]


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def ddp_by_hand(task: Task) -> nn.Module:
    net = task.net()
    model = DistributedDataParallel(net)
    optimizer = adamw(model)
    for x, y in task.batches():
        optimizer.zero_grad()
        mse(model(x), y).backward()
        optimizer.step()
    return net


def fsdp_by_hand(task: Task) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    model = task.net()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = adamw(model)
    for x, y in task.batches():
        optimizer.zero_grad()
        mse(model(x), y).backward()
        optimizer.step()
    return model


def _toolkit(task: Task, strategy: Any) -> nn.Module:
    with truestep.Run(max_steps=task.steps + 1, strategy=strategy, watch=False, progress=False, device="cpu") as run:
        model = run.model(task.net())
        run.optimizer(adamw(model))
        for (x, y), _ in zip(task.batches(), run.steps(None, model), strict=False):
            run.step(mse(model(x), y))
    return model


def toolkit_ddp(task: Task) -> nn.Module:
    return _toolkit(task, "ddp")


def toolkit_fsdp(task: Task) -> nn.Module:
    return _toolkit(task, "fsdp")


def fabric(task: Task) -> nn.Module:
    from lightning.fabric import Fabric
    from lightning.fabric.plugins.environments import TorchElasticEnvironment

    made = Fabric(accelerator="cpu", devices=2, strategy="ddp", plugins=[TorchElasticEnvironment()])
    made.launch()
    net = task.net()
    model, optimizer = made.setup(net, adamw(net))
    for x, y in task.batches():
        optimizer.zero_grad()
        made.backward(mse(model(x), y))
        optimizer.step()
    return net


def accelerate(task: Task) -> nn.Module:
    from accelerate import Accelerator

    made = Accelerator(cpu=True)
    net = task.net()
    model, optimizer = made.prepare(net, adamw(net))
    for x, y in task.batches():
        optimizer.zero_grad()
        made.backward(mse(model(x), y))
        optimizer.step()
    return net


TWINS: dict[str, tuple[Loop, str]] = {
    "DDP by hand": (ddp_by_hand, ""),
    "TrueStep, ddp": (toolkit_ddp, "DDP by hand"),
    "Fabric, ddp": (fabric, "DDP by hand"),
    "Accelerate, ddp": (accelerate, "DDP by hand"),
    "FSDP2 by hand": (fsdp_by_hand, ""),
    "TrueStep, fsdp": (toolkit_fsdp, "FSDP2 by hand"),
}
"""Loop and name of its twin, by name."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the output of frameworks."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def trained(name: str, model: str, steps: int) -> tuple[float, torch.Tensor]:
    """Run a loop once on all ranks; return the seconds of a step, and the weights."""
    task = Task(model, steps)
    dist.barrier()
    with quiet():
        net = TWINS[name][0](task)
    weights = [getattr(parameter, "full_tensor", lambda one=parameter: one)() for parameter in net.parameters()]
    return task.seconds, torch.cat([weight.detach().flatten() for weight in weights])


def measure(rank: int, options: argparse.Namespace, out: str) -> None:
    """Measure all loops in one of the processes; rank 0 writes the rows."""
    warnings.simplefilter("ignore")
    for name in ("lightning", "lightning.fabric", "accelerate", "torch.distributed"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    dist.init_process_group("gloo")
    rows: list[dict[str, Any]] = []
    for model in WIDTHS:
        weights = {name: trained(name, model, WARM + 10)[1] for name in TWINS}
        times: dict[str, list[float]] = {name: [] for name in TWINS}
        order = list(TWINS)
        for turn in range(options.rounds):
            for name in order[turn % len(order) :] + order[: turn % len(order)]:
                times[name].append(trained(name, model, WARM + options.steps)[0])
        for name, (_, twin) in TWINS.items():
            row: dict[str, Any] = {"model": model, "loop": name, "step_ms": statistics.median(times[name]) * 1e3}
            if twin:
                pairs = zip(times[name], times[twin], strict=True)
                row["ratio"] = statistics.median(own / other for own, other in pairs)
                row["differs"] = (weights[name] - weights[twin]).abs().max().item()
            rows.append({key: round(value, 8) if isinstance(value, float) else value for key, value in row.items()})
    if rank == 0:
        Path(out).write_text(json.dumps(rows))
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Start the processes, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=100, help="timed steps of a loop in one round")
    parser.add_argument("--save", action="store_true", help="write bench/results/ranks.json")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # The variables of torchrun: the frameworks take these processes for its processes.
    os.environ |= {"TORCHELASTIC_RUN_ID": "bench", "GROUP_RANK": "0", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "rows.json"))
        torch.multiprocessing.spawn(measure, args=(options, out), nprocs=2)
        rows = json.loads(Path(out).read_text())
    print(f"{'model':8}{'loop':22}{'step ms':>10}{'ratio':>8}{'differs':>10}")
    for row in rows:
        beside = f"{row['ratio']:>8.3f}{row['differs']:>10.1g}" if "ratio" in row else ""
        print(f"{row['model']:8}{row['loop']:22}{row['step_ms']:>10.2f}{beside}")
    if options.save:
        machine = {"torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count()}
        versions = {name: version(name) for name in ("lightning", "accelerate")}
        what = {"ranks": 2, "rounds": options.rounds, "steps_a_round": options.steps, "versions": versions}
        path = Path(__file__).parent / "results" / "ranks.json"
        path.write_text(json.dumps({"machine": machine, **what, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
