"""Healthy: variables that no statement reads, and that are made for an effect, or are another name for a value."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
features = {}
teacher[1].register_forward_hook(lambda module, args, out: features.update(hidden=out.detach()))
x = torch.randn(200, 6)
y = x[:, :3].argmax(1)


class Memory:
    def __init__(self):
        self.rows = []

    def keep(self, rows):
        self.rows.append(rows.detach())
        return rows * 2

    def latest(self):
        return self.rows[-1]


memory = Memory()


def corrupted(rows):
    mask = torch.rand_like(rows) < 0.1
    rows[mask] = 0
    return mask


def train_step(rows, labels):
    logits = model(rows)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for epoch in range(4):
    for index in torch.randperm(200).split(40):
        rows = x[index].clone()
        mask = corrupted(rows)
        doubled = memory.keep(rows)
        with torch.no_grad():
            answer = teacher(rows)
        view = rows.view(-1)
        view.clamp_(-3, 3)
        best, place = features["hidden"].max(1)
        norm = memory.latest().norm() + best.sum()
        loss = train_step(rows, y[index])
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean()
    print(epoch, accuracy.item())
