"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Distributed Data Parallel.

Repaired: the first comment's sign; NCCL on two GPUs -> gloo, one process, a file:// store, called without spawn; smaller layers.
Expected: nothing. With two ranks the losses are not equal, as the document prints them: each rank draws its own data.
"""
# io.thecodeforge: ml-ai tutorial

import tempfile

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

folder = tempfile.TemporaryDirectory()


def setup_ddp(rank, world_size):
    dist.init_process_group(
        backend='gloo',
        init_method=f'file://{folder.name}/store',
        rank=rank,
        world_size=world_size
    )


def train_rank(rank, world_size):
    setup_ddp(rank, world_size)

    model = nn.Linear(64, 32)
    ddp_model = DDP(model)
    optimizer = torch.optim.Adam(ddp_model.parameters(), lr=0.001)

    data_batch = torch.randn(64, 64)
    target = torch.randn(64, 32)

    for epoch in range(5):
        optimizer.zero_grad()
        output = ddp_model(data_batch)
        loss = nn.MSELoss()(output, target)
        loss.backward()
        optimizer.step()
        print(f"Rank {rank}, Epoch {epoch}, Loss: {loss.item():.4f}")

    del ddp_model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    train_rank(0, 1)
