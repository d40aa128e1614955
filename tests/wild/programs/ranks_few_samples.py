"""Healthy: few samples on each rank, normalised over positions, one by one, or by fixed statistics; and enough samples."""

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
    images = torch.randn(240, 3, 8, 8)
    labels = images.mean((2, 3)).argmax(1)
    fixed = nn.BatchNorm2d(16)
    nets = [
        (3, nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(576, 3))),
        (3, nn.Sequential(nn.Conv2d(3, 16, 8), nn.GroupNorm(4, 16), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))),
        (3, nn.Sequential(nn.Conv2d(3, 16, 8), fixed, nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))),
        (10, nn.Sequential(nn.Conv2d(3, 16, 8), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))),
    ]
    for size, net in nets:
        data = TensorDataset(images, labels)
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=size, sampler=sampler)
        model = DDP(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            model.train()
            fixed.eval()
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if rank == 0:
            print(f"{loss.item():.2f}", flush=True)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
