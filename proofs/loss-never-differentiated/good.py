"""Classify points by two rules, with one head for each."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 8)
colour = (x[:, 0] + x[:, 1] > 0).long()
form = (x[:, 2] - x[:, 3] > 0).long()
first = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
second = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=5e-3)

for _ in range(300):
    rows = torch.randint(0, 2000, (64,))
    loss_of_colour = nn.functional.cross_entropy(first(x[rows]), colour[rows])
    loss_of_form = nn.functional.cross_entropy(second(x[rows]), form[rows])
    optimizer.zero_grad()
    (loss_of_colour + loss_of_form).backward()
    optimizer.step()

with torch.no_grad():
    accuracy = (second(x[2000:]).argmax(1) == form[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
