"""Healthy: DDP on gloo with a DistributedSampler, accumulation under no_sync, a schedule, evaluation reduced over ranks."""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :3].argmax(1)
data = TensorDataset(x[:448], y[:448])
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = DDP(nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
accumulate, epochs = 4, 4
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=epochs * len(loader) // accumulate)
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    model.train()
    for number, (inputs, labels) in enumerate(loader):
        last = (number + 1) % accumulate == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(inputs), labels) / accumulate
            loss.backward()
        if last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        mine = slice(448 + rank * 32, 448 + rank * 32 + 32)
        hits = (model.module(x[mine]).argmax(1) == y[mine]).sum()
    dist.all_reduce(hits)
if rank == 0:
    print(f"accuracy {int(hits) / 64:.2f} with {world_size} ranks", flush=True)
dist.destroy_process_group()
