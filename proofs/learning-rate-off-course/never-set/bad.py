"""Classify points by a smooth rule of ten inputs, with a decay that is computed and only printed."""

import math
import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(400):
    lr = 0.1 * 0.5 * (1 + math.cos(math.pi * step / 400))  # error: learning-rate-off-course
    rows = torch.randint(0, 2000, (20,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: rate {lr:.4f}")

with torch.no_grad():
    accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
