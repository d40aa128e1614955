"""Two ranks train a classifier; its accuracy after each epoch is compared with that on all validation samples."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(seed)
    points = torch.randn(6000, 20)
    labels = (points[:, :5] @ torch.randn(5, 4) + torch.randn(6000, 4)).argmax(1)
    data = TensorDataset(points[:500], labels[:500])
    held_out = TensorDataset(points[500:660], labels[500:660])
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=25, sampler=sampler)
    validation = DataLoader(held_out, batch_size=40, sampler=DistributedSampler(held_out, shuffle=False))
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    error = 0.0
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        hits = torch.tensor(0)
        with torch.no_grad():
            for inputs, targets in validation:
                hits += (net(inputs).argmax(1) == targets).sum()
            whole = (net(points[500:660]).argmax(1) == labels[500:660]).float().mean()
        dist.all_reduce(hits)
        accuracy = hits / len(held_out)
        error += abs(accuracy - whole).item() / 20
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f}")
    if rank == 0:
        print(f"result: {error:.4f}", flush=True)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
