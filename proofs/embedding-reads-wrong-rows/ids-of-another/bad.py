"""Predict ratings of 80 items by 50 users, from features of both."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

users, items = torch.randint(0, 50, (3000,)), torch.randint(0, 80, (3000,))
ratings = (torch.randn(50, 3)[users] * torch.randn(80, 3)[items]).sum(1)


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(50, 8), nn.Embedding(80, 8)

    def forward(self, user, item):
        return (self.users(user) * self.items(user)).sum(1)  # error: embedding-reads-wrong-rows


model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
for _epoch in range(40):
    for rows in torch.randperm(2400).split(100):
        optimizer.zero_grad()
        F.mse_loss(model(users[rows], items[rows]), ratings[rows]).backward()
        optimizer.step()

with torch.no_grad():
    error = F.mse_loss(model(users[2400:], items[2400:]), ratings[2400:]).item()
print(f"result: {error:.4f}")
