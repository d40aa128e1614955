"""Modules with a setting called requires_grad, and a body frozen, unfrozen, with an attribute left behind."""

import torch
from torch import nn


class Basis(nn.Module):
    """Whether its input requires gradients is a separate setting."""

    def __init__(self, requires_grad=False):
        super().__init__()
        self.requires_grad = requires_grad
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return (x if self.requires_grad else x.detach()) * self.scale


torch.manual_seed(0)
body = nn.Sequential(Basis(), nn.Linear(6, 16), nn.ReLU())
teacher = nn.Linear(6, 2)
teacher.requires_grad = False
head = nn.Linear(16, 2)
model = nn.Sequential(body, head)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
body.requires_grad = False
for p in body.parameters():
    p.requires_grad = False
x = torch.randn(64, 6)
for step in range(60):
    if step == 30:
        for p in body.parameters():
            p.requires_grad = True
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), teacher(x).detach()).backward()
    optimizer.step()
