"""Healthy: rank 0 evaluates all validation samples and prints the accuracy, the others wait."""

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
    points = torch.randn(640, 8)
    data = TensorDataset(points, points[:, :3].argmax(1))
    training, held_out = torch.utils.data.random_split(data, [512, 128])
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=32, sampler=sampler)
    validation = DataLoader(held_out, batch_size=32)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        model.eval()
        if rank == 0:
            hits = 0
            with torch.no_grad():
                for inputs, labels in validation:
                    hits += (model.module(inputs).argmax(1) == labels).sum().item()
            print(f"epoch {epoch}: accuracy {hits / len(held_out):.3f}")
        dist.barrier()
        model.train()
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
