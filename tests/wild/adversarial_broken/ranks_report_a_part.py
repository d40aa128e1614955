"""Broken: a function evaluates the part of a rank, and rank 0 logs its result."""

import logging
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)
log = logging.getLogger("train")


def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for inputs, labels in loader:
            scores = model(inputs)  # error: metrics-not-reduced
            total += F.cross_entropy(scores, labels, reduction="sum").item()
            count += len(labels)
    model.train()
    return total / count


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(640, 8)
    data = TensorDataset(points, points[:, :3].argmax(1))
    training, held_out = torch.utils.data.random_split(data, [512, 128])
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=32, sampler=sampler)
    validation = DataLoader(held_out, batch_size=32, sampler=DistributedSampler(held_out, shuffle=False))
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        loss = evaluate(model.module, validation)
        if dist.get_rank() == 0:
            log.warning("epoch %d", epoch)
            log.info("validation loss %.3f", loss)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
