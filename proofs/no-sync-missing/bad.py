"""Two ranks take steps of eight micro-batches; the time of a step is measured."""

import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(2 * seed + rank)
    net = nn.Sequential(nn.Linear(2000, 2000), nn.ReLU(), nn.Linear(2000, 4))
    model = DistributedDataParallel(net)  # error: no-sync-missing
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    times = []
    for _step in range(12):
        begun = time.perf_counter()
        optimizer.zero_grad()
        for _micro in range(8):
            points = torch.randn(2, 2000)
            loss = F.cross_entropy(model(points), points[:, :4].argmax(1)) / 8
            loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begun)
    if rank == 0:
        print(f"result: {1e3 * sorted(times)[len(times) // 2]:.1f}", flush=True)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
