"""Healthy: gradients are compressed by a hook, uneven parts end with `join`, rank 0 saves, and a metric is reduced."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.set_num_threads(1)


def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(360, 8)
    labels = points[:, :3].argmax(1)
    data = TensorDataset(points[:300], labels[:300])
    part = Subset(data, range(0, 140) if rank == 0 else range(140, 300))
    loader = DataLoader(part, batch_size=10, shuffle=True)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
    model.register_comm_hook(None, fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        with model.join():
            for inputs, targets in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs), targets).backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            hits = (model.module(points[300 + rank :: 2]).argmax(1) == labels[300 + rank :: 2]).sum()
        model.train()
        dist.all_reduce(hits)
        if rank == 0:
            torch.save(model.module.state_dict(), f"{store}.pt")
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
