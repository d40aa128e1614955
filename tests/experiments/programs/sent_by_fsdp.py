"""Print the bytes that one of eight ranks sends in a step of FSDP2, counted at the collectives of torch."""

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

DEVICES = 8


class Counted(TorchDispatchMode):
    sent = 0.0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func).startswith("c10d._"):  # the gathered or the undivided tensor is the largest argument
            tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
            self.sent += (DEVICES - 1) / DEVICES * max(tensor.nbytes for tensor in tensors)
        return func(*args, **(kwargs or {}))


torch.distributed.init_process_group("fake", rank=0, world_size=DEVICES, store=FakeStore())
model = nn.Sequential(nn.Sequential(*(nn.Linear(64, 64) for _ in range(4))), nn.Linear(64, 8))
size = sum(parameter.nbytes for parameter in model[0].parameters())
outside = sum(parameter.nbytes for parameter in model[1].parameters())
for block in model[0]:
    fully_shard(block)
fully_shard(model)
with Counted() as counted:
    model(torch.randn(4, 64)).sum().backward()
print(counted.sent, size, outside)
torch.distributed.destroy_process_group()
