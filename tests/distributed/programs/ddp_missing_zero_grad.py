"""DDP on gloo: gradients are never cleared."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)), gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(24):
    x = torch.randn(16, 8)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()  # error: missing-zero-grad
if dist.get_rank() == 0:
    print(f"loss {loss.item():.2f}", flush=True)
dist.destroy_process_group()
