"""Rank 1 is killed in the middle of the run, as by the kernel when memory runs out; gradients are never cleared."""
import os
import signal

import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(20):
    if step == 10 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    loss = model(torch.randn(16, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()  # error: missing-zero-grad
