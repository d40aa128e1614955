"""Minibatches by permutation; model.zero_grad() in the loop over epochs."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X, Y = torch.randn(150, 6), torch.randint(0, 2, (150,))
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.zero_grad()
    order = torch.randperm(len(X))
    for i in range(0, len(X), 25):
        idx = order[i : i + 25]
        loss = F.cross_entropy(model(X[idx]), Y[idx])
        loss.backward()
        optimizer.step()  # error: zero-grad-once-per-epoch
    print(epoch, loss.item())
