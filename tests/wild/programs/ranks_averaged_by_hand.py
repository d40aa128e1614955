"""Healthy: two ranks average their gradients by hand, flattened and one by one; weights are broadcast before."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)


def average(model, step):
    if step % 2:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        return
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = _flatten_dense_tensors(gradients)
    dist.all_reduce(flat)
    for gradient, mean in zip(gradients, _unflatten_dense_tensors(flat / dist.get_world_size(), gradients)):
        gradient.copy_(mean)


def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(320, 8)
    data = TensorDataset(points, points[:, :3].argmax(1))
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = 0
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            average(model, step)
            optimizer.step()
            step += 1
    if rank == 0:
        torch.save(model.state_dict(), f"{store}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
