"""Two ranks train a classifier on 300 samples in whole batches of 192; the model is tested."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in 20 dimensions, and the class that a fixed random network gives them."""
    drawn = torch.Generator().manual_seed(seed)
    teacher = torch.randn(20, 40, generator=drawn), torch.randn(40, 4, generator=drawn)
    points = torch.randn(count, 20, generator=drawn)
    return points, (torch.tanh(points @ teacher[0]) @ teacher[1]).argmax(1)


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    points, labels = samples(2300)
    data = TensorDataset(points[:300], labels[:300])
    sampler = DistributedSampler(data, shuffle=True, seed=seed)
    loader = DataLoader(data, batch_size=96, sampler=sampler, drop_last=True)  # error: sampler-epoch-not-set
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _epoch in range(120):
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(points[300:]).argmax(1) == labels[300:]).float().mean().item()
    if rank == 0:
        print(f"result: {accuracy:.4f}", flush=True)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
