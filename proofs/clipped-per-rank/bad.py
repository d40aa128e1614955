"""Two ranks train a classifier that FSDP divides; each clips its part of the gradients by the norm of this part."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in 20 dimensions, and the class that a fixed random network gives them."""
    drawn = torch.Generator().manual_seed(seed)
    teacher = torch.randn(20, 16, generator=drawn), torch.randn(16, 4, generator=drawn)
    points = torch.randn(count, 20, generator=drawn)
    return points, (torch.tanh(points @ teacher[0]) @ teacher[1]).argmax(1)


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    points, labels = samples(5000)
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
    model = FSDP(net, device_id=torch.device("cpu"), use_orig_params=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    drawn = torch.Generator().manual_seed(100 * seed + rank)
    for _step in range(400):
        batch = torch.randint(4000, (8,), generator=drawn)
        loss = F.cross_entropy(model(points[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.3)  # error: clipped-per-rank
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(points[4000:]).argmax(1) == labels[4000:]).float().mean().item()
    if rank == 0:
        print(f"result: {accuracy:.4f}", flush=True)
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(str(Path(folder, "store")),), nprocs=2, start_method="fork")
