import tempfile

import torch
import torch.distributed as dist
from _state import tell
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(16)
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(12):
        optimizer.zero_grad(set_to_none=bool(step % 2))
        if step % 4 == 3:
            with model.no_sync():
                nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,))).backward()
        loss = nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 3, (16,)))
        loss.backward()
        optimizer.step()
        print(step, repr(loss.item()))
    tell(net, optimizer)
    del model  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()
