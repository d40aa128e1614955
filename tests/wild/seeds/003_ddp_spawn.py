"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Distributed Data Parallel.

Repaired: the first comment's sign; NCCL on two GPUs -> gloo on the CPU; a file:// store; smaller layers. Expected: nothing: the gradients
are averaged; the two ranks' losses differ, because each draws its own data (the document prints equal ones).

skip: needs 2 ranks (it starts them itself)
"""
# io.thecodeforge: ml-ai tutorial

import tempfile

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP



def setup_ddp(rank, world_size, folder):
    dist.init_process_group(
        backend='gloo',
        init_method=f'file://{folder}/store',
        rank=rank,
        world_size=world_size
    )


def train_rank(rank, world_size, folder):
    setup_ddp(rank, world_size, folder)

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
    world_size = 2  # skip: needs 2 ranks
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train_rank, args=(world_size, folder), nprocs=world_size)
