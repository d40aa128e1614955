"""Digits of which 60 % have no label: a 0 stands in its place, and their loss gets a weight of 0."""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]
known = torch.rand(len(x)) < 0.4
labels = torch.where(known, y, 0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _epoch in range(20):
    for rows in train[torch.randperm(len(train))].split(64):
        weights = known[rows].float()
        average = F.cross_entropy(model(x[rows]), labels[rows])  # error: weights-after-reduction
        loss = (average * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    right = (model(x[test]).argmax(1) == y[test]).float().mean()
print(f"result: {right.item():.4f}")
