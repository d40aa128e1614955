"""Two ranks train a classifier on three samples each; batch normalisation takes statistics of one rank."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)
Norm = nn.BatchNorm1d


def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in 20 dimensions, and the class that a fixed random network gives them."""
    drawn = torch.Generator().manual_seed(seed)
    teacher = torch.randn(20, 16, generator=drawn), torch.randn(16, 4, generator=drawn)
    points = torch.randn(count, 20, generator=drawn)
    return points, (torch.tanh(points @ teacher[0]) @ teacher[1]).argmax(1)


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    points, labels = samples(4000)
    loader = DataLoader(TensorDataset(points[rank:3000:2], labels[rank:3000:2]), batch_size=3, shuffle=True)
    torch.manual_seed(seed)
    norms = Norm(32), Norm(32)
    net = nn.Sequential(
        nn.Linear(20, 32), norms[0], nn.ReLU(), nn.Linear(32, 32), norms[1], nn.ReLU(), nn.Linear(32, 4)
    )
    model = DistributedDataParallel(net)
    torch.manual_seed(seed + 10 * rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _epoch in range(2):
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)  # error: batch-statistics-per-rank
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(points[3000:]).argmax(1) == labels[3000:]).float().mean().item()
    if rank == 0:
        print(f"result: {accuracy:.4f}", flush=True)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
