"""Healthy: FSDP2 on a mesh of CPUs, in several styles of clearing and stepping; gradients are zeroed in place, too."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

torch.set_num_threads(1)
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
losses = []
for number, (options, to_none, accumulate) in enumerate(
    [({"fused": True}, False, 1), ({"foreach": True}, False, 1), ({}, True, 1), ({"fused": True}, False, 2), ({}, True, 3)]
):
    torch.manual_seed(number)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
    torch.manual_seed(100 * number + dist.get_rank())
    for step in range(25):
        optimizer.zero_grad(set_to_none=to_none)
        for micro_step in range(accumulate):
            model.set_requires_gradient_sync(micro_step == accumulate - 1)
            x = torch.randn(16, 8)
            loss = F.cross_entropy(model(x), x[:, :3].argmax(1)) / accumulate
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    losses.append(f"{loss.item() * accumulate:.2f}")
if dist.get_rank() == 0:
    print("losses", *losses, flush=True)
dist.destroy_process_group()
