"""FSDP1, its flat parameters and the original ones: gradients are never cleared."""
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
cpu = torch.device("cpu")
layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
early = torch.optim.SGD(layers.parameters(), lr=1e-3) if "early" in sys.argv else None
model = FSDP(layers, device_id=cpu, use_orig_params="original" in sys.argv)
optimizer = early or torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(24):
    if "window" in sys.argv:
        with model.no_sync():
            model(torch.randn(16, 8)).square().mean().backward()
    x = torch.randn(16, 8)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()  # error: missing-zero-grad
if dist.get_rank() == 0:
    print(f"loss {loss.item():.2f}", flush=True)
dist.destroy_process_group()
