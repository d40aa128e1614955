"""Broken: each rank begins one batch later in the stream, and then reads all of it."""

import itertools
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)


def stream():
    drawn = torch.Generator().manual_seed(5)
    while True:
        points = torch.randn(16, 8, generator=drawn)
        yield points, points[:, :3].argmax(1)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for inputs, labels in itertools.islice(stream(), rank, 60 + rank):
        loss = F.cross_entropy(model(inputs), labels)  # error: ranks-see-same-data
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
