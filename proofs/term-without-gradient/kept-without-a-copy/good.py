"""Learn two tasks one after the other; a penalty holds the weights where the first task left them."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

digits = load_digits()
order = torch.randperm(len(digits.target))
x, y = torch.tensor(digits.data, dtype=torch.float32)[order] / 16, torch.tensor(digits.target)[order]
held = torch.arange(500)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), None

for task in ((y[500:] < 5).nonzero()[:, 0] + 500, (y[500:] > 4).nonzero()[:, 0] + 500):
    for _epoch in range(15):
        for rows in task[torch.randperm(len(task))].split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            if kept is not None:
                pairs = zip(model.parameters(), kept, strict=True)
                loss = loss + 0.1 * sum((weight - old).square().sum() for weight, old in pairs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    kept = [weight.detach().clone() for weight in model.parameters()]

with torch.no_grad():
    accuracy = (model(x[held]).argmax(1) == y[held]).float().mean().item()
print(f"result: {accuracy:.4f}")
