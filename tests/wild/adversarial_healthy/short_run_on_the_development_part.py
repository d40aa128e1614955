"""Healthy: a short run on the development part, with a loop that can read the training loader."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import TensorDataset, DataLoader

torch.manual_seed(0)


def build(X, Y):
    return {"train_loader": DataLoader(TensorDataset(X[:200], Y[:200]), batch_size=20, shuffle=True)}


X = torch.randn(400, 8)
w = torch.randn(8, 3)
Y = (X @ w).argmax(1)
train_loader = DataLoader(TensorDataset(X[:200], Y[:200]), batch_size=20, shuffle=True)
dev_loader = DataLoader(TensorDataset(X[200:300], Y[200:300]), batch_size=20, shuffle=True)
test_loader = DataLoader(TensorDataset(X[300:], Y[300:]), batch_size=50)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 3e-3)
quick = True
for ep in range(15):
    for x, y in dev_loader if quick else train_loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    for x, y in test_loader:
        print((net(x).argmax(1) == y).float().mean())
