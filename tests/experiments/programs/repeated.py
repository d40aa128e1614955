"""A training with one source of randomness that is not controlled, by its argument."""

import random
import sys
import time

import numpy as np
import torch

kind = sys.argv[1]
if kind != "torch":
    torch.manual_seed(int(time.time() * 1e6) % 2**31 if kind == "clock" else 0)
x = torch.randn(64, 4)
if kind == "numpy":
    x = x + torch.from_numpy(np.random.randn(64, 4)).float()
if kind == "system":
    x = x + torch.from_numpy(np.random.default_rng().normal(size=(64, 4))).float()
if kind == "hash":
    x = x[[int(word[1:]) for word in {f"w{number}" for number in range(64)}]]
y = x.sum(1, keepdim=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    output = model(x)
    if kind == "python" and step == 3:
        output = output + random.random()
    loss = torch.nn.functional.mse_loss(output, y)
    loss.backward()
    optimizer.step()
print(f"error {float(loss.detach()) + (random.random() if kind == 'printed' else 0):.6f}")
