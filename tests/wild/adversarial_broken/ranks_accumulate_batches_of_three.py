"""Broken: an accumulation makes the batch large enough for the optimizer, and not for the batch normalisation."""

import contextlib
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    images = torch.randn(600, 3, 8, 8)
    data = TensorDataset(images, images.mean((2, 3)).argmax(1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=3, sampler=sampler)
    body = nn.Sequential(nn.Conv2d(3, 16, 8), nn.BatchNorm2d(16), nn.ReLU())
    model = DDP(nn.Sequential(body, nn.Flatten(), nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for number, (inputs, labels) in enumerate(loader):
            last = number % 4 == 3
            with contextlib.nullcontext() if last else model.no_sync():
                F.cross_entropy(model(inputs), labels).div(4).backward()  # error: batch-statistics-per-rank
            if last:
                optimizer.step()
                optimizer.zero_grad()
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
