"""Broken: a list of the original parameters under FSDP, clipped after an accumulation by the norm of one rank."""

import contextlib
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.utils import clip_grad_norm_

torch.set_num_threads(1)
warnings.simplefilter("ignore")


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    device = torch.device("cpu")
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
    model = FSDP(net, device_id=device, use_orig_params=True)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    torch.manual_seed(rank + 1)
    for step in range(30):
        for last in (False, True):
            with contextlib.nullcontext() if last else model.no_sync():
                inputs = torch.randn(16, 8)
                (F.cross_entropy(model(inputs), inputs[:, :3].argmax(1)) / 2).backward()
        norm = clip_grad_norm_(parameters, 0.1)  # error: clipped-per-rank
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 10 == 0:
            print(f"norm {norm.item():.2f}", flush=True)
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
