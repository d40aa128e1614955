"""Adapt a trained classifier to few noisy samples, held near its first state by a penalty."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

rule = torch.randn(10, 4)
x = torch.randn(1200, 10)
y = (x @ rule).argmax(1)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _step in range(150):
    rows = torch.randint(0, 600, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    optimizer.step()

reference = net  # error: reference-is-the-model
few, noisy = torch.randn(40, 10), torch.randint(0, 4, (40,))
for _step in range(200):
    unlabelled = torch.randn(64, 10)
    with torch.no_grad():
        before = reference(unlabelled).log_softmax(1)
    distance = (net(unlabelled).log_softmax(1) - before).square().mean()
    optimizer.zero_grad()
    (nn.functional.cross_entropy(net(few), noisy) + 5 * distance).backward()
    optimizer.step()
accuracy = (net(x[600:]).argmax(1) == y[600:]).float().mean().item()
print(f"result: {accuracy:.4f}")
