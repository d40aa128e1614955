"""FSDP2 on a mesh of CPUs: gradients are never cleared."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for _ in range(24):
    x = torch.randn(16, 8)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()  # error: missing-zero-grad
if dist.get_rank() == 0:
    print(f"loss {loss.item():.2f}", flush=True)
dist.destroy_process_group()
