"""Healthy: FSDP2 with a separate unit for batch normalisation, evaluated on a part of the samples by each rank."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(640, 8)
    labels = points[:, :3].argmax(1)
    sampler = DistributedSampler(TensorDataset(points[:512], labels[:512]))
    loader = DataLoader(sampler.dataset, batch_size=16, sampler=sampler)
    held_out = TensorDataset(points[512:], labels[512:])
    validation = DataLoader(held_out, batch_size=32, sampler=DistributedSampler(held_out, shuffle=False))
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model[1], mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        counts = torch.zeros(2)
        with torch.no_grad():
            for inputs, targets in validation:
                counts += torch.tensor([(model(inputs).argmax(1) == targets).sum(), len(targets)])
        dist.all_reduce(counts)
        if rank == 0:
            print(f"accuracy {counts[0] / counts[1]:.2f}", flush=True)
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
