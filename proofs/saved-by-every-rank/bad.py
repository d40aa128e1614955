"""Two ranks train, and save their weights with values of their own; the files are loaded afterwards."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def train(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(2 * seed + rank)
    net = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 4))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(15):
        points = torch.randn(25, 20)
        loss = F.cross_entropy(model(points), points[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = {"model": net.state_dict(), "rank": rank, "noise": noise(step, rank)}
        torch.save(state, f"{folder}/step-{step}.pt")  # error: saved-by-every-rank
        dist.barrier()
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


def noise(step: int, rank: int) -> torch.Tensor:
    return torch.randn(2_000_000, generator=torch.Generator().manual_seed(1000 * seed + 2 * step + rank))


def is_whole(path: Path) -> bool:
    """Return True if a file loads, and all of it is from one rank."""
    try:
        state = torch.load(path)
    except RuntimeError:
        return False
    return torch.equal(state["noise"], noise(int(path.stem.partition("-")[2]), state["rank"]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
        files = sorted(Path(folder).glob("*.pt"))
        print(f"result: {sum(map(is_whole, files)) / len(files):.4f}")
