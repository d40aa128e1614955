"""Healthy: each rank runs a model on the whole graph, and its loss is that of its part of the nodes."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 32), nn.Linear(32, 3)

    def forward(self, nodes, edges):
        hidden = F.relu(edges @ self.first(nodes))
        return edges @ self.second(F.dropout(hidden, 0.2, self.training))


def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    nodes = torch.randn(200, 12)
    edges = torch.eye(200) + (torch.rand(200, 200) < 0.02)
    edges = edges / edges.sum(1, keepdim=True)
    labels = (edges @ nodes)[:, :3].argmax(1)
    mine = torch.arange(rank, 160, 2)
    model = DDP(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(40):
        optimizer.zero_grad()
        noisy = nodes + 0.05 * torch.randn_like(nodes)
        F.cross_entropy(model(noisy, edges)[mine], labels[mine]).backward()
        optimizer.step()
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
