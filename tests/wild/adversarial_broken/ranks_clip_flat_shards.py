"""Broken: the flat shards of nested FSDP units are clipped by torch's function."""

import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

torch.set_num_threads(1)
warnings.simplefilter("ignore")


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    device = torch.device("cpu")
    block = FSDP(nn.Sequential(nn.Linear(32, 32), nn.ReLU()), device_id=device)
    model = FSDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), block, nn.Linear(32, 3)), device_id=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(rank + 1)
    for _ in range(40):
        inputs = torch.randn(16, 8)
        loss = F.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.05)  # error: clipped-per-rank
        optimizer.step()
        optimizer.zero_grad()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
