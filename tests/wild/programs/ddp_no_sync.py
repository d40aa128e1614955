"""Healthy: DistributedDataParallel in one gloo process (file init): set_epoch, accumulation under no_sync, reduced metrics."""
import contextlib
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def demo(rank, world_size, init_file, accum=2, epochs=4):
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    w = torch.randn(8, 3)
    x = torch.randn(640, 8)
    y = (x @ w).argmax(1)
    train_set, val_set = TensorDataset(x[:512], y[:512]), TensorDataset(x[512:], y[512:])
    sampler = DistributedSampler(train_set, num_replicas=world_size, rank=rank, shuffle=True, seed=0)
    val_sampler = DistributedSampler(val_set, num_replicas=world_size, rank=rank, shuffle=False)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=64, sampler=val_sampler)

    ddp_model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.2, momentum=0.9)

    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        ddp_model.train()
        for i, (xb, yb) in enumerate(loader):
            last = (i + 1) % accum == 0
            with contextlib.nullcontext() if last else ddp_model.no_sync():
                loss = F.cross_entropy(ddp_model(xb), yb) / accum
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()

        ddp_model.eval()
        counts = torch.zeros(2)
        with torch.no_grad():
            for xb, yb in val_loader:
                counts += torch.tensor([(ddp_model(xb).argmax(1) == yb).sum().item(), float(len(yb))])
        dist.all_reduce(counts)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item() * accum:.4f} val acc {counts[0].item() / counts[1].item():.4f}")
    del ddp_model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        demo(0, 1, os.path.join(tmp, "rendezvous"))
