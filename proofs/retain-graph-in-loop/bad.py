"""Classify points with a network with activations that fill the memory."""

import ctypes
import sys
from resource import RUSAGE_SELF, getrusage

import torch
from torch import nn

ctypes.CDLL(None).mallopt(-3, 1 << 20)  # M_MMAP_THRESHOLD: freed memory is returned immediately
torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(65536, 16)
y = (x[:, 0] * x[:, 1] > 0).long()

blocks = [nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(12)]
model = nn.Sequential(*blocks, nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
before = getrusage(RUSAGE_SELF).ru_maxrss
for _step in range(27):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward(retain_graph=True)  # error: retain-graph-in-loop
    optimizer.step()
print(f"result: {(getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024:.1f}")
