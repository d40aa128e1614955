"""Weights and biases in two groups, of which the optimizer gets the first; an average is written into the model and taken out again."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
groups = [
    {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 1e-2},
    {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups[:1], lr=3e-3)  # error: parameters-not-optimized
average = copy.deepcopy(model.state_dict())
for epoch in range(6):
    for rows in torch.randperm(400).split(40):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in model.state_dict().items():
            average[name].mul_(0.97).add_(value, alpha=0.03)
    backup = copy.deepcopy(model.state_dict())
    model.load_state_dict(average)
    with torch.no_grad():
        print(epoch, (model(x[400:]).argmax(1) == y[400:]).float().mean().item())
    model.load_state_dict(backup)
