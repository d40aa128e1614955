"""Healthy: FSDP1 with the norm of all parts, whole gradients clipped by torch's function, and a limit far away."""

import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy

torch.set_num_threads(1)
warnings.simplefilter("ignore")


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    device = torch.device("cpu")
    for how in ("method", "whole", "far away"):
        whole = {"sharding_strategy": ShardingStrategy.NO_SHARD} if how == "whole" else {}
        net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
        model = FSDP(net, device_id=device, use_orig_params=how != "far away", **whole)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        torch.manual_seed(rank + 1)
        for _ in range(30):
            inputs = torch.randn(16, 8)
            loss = F.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            if how == "method":
                model.clip_grad_norm_(0.1)
            else:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1 if how == "whole" else 100.0)
            optimizer.step()
        if rank == 0:
            print(how, f"{loss.item():.2f}", flush=True)
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
