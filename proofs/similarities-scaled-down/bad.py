"""Contrastive training on two noisy views of each digit, and the accuracy of the nearest neighbours."""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
TEMPERATURE = 0.1
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _epoch in range(15):
    for rows in train[torch.randperm(len(train))].split(128):
        views = [x[rows] + 0.3 * torch.randn(len(rows), 64) for _view in range(2)]
        a, b = (F.normalize(model(view), dim=1) for view in views)
        scores = a @ b.T * TEMPERATURE  # error: similarities-scaled-down
        loss = F.cross_entropy(scores, torch.arange(len(rows)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    found = F.normalize(model(x), dim=1)
    nearest = (found[test] @ found[train].T).topk(5).indices
    right = (y[train][nearest].mode(1).values == y[test]).float().mean()
print(f"result: {right.item():.4f}")
