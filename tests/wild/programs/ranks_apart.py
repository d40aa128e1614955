"""Healthy: processes of a group train the members of an ensemble on the same data, with other seeds, and
each saves its own file."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(320, 8)
    labels = points[:, :3].argmax(1)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    loader = DataLoader(TensorDataset(points[:256], labels[:256]), batch_size=16, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        torch.save(model.state_dict(), f"{folder}/member-{rank}.pt")
    model.eval()
    with torch.no_grad():
        probabilities = model(points[256:]).softmax(-1)
    dist.all_reduce(probabilities)
    if rank == 0:
        print("ensemble", (probabilities.argmax(1) == labels[256:]).float().mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
