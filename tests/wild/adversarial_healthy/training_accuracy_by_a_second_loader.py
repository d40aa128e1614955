"""Healthy: an accuracy on the training samples, by another data set of the same arrays, beside a validation."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import TensorDataset, DataLoader

torch.manual_seed(0)
X = torch.randn(300, 8)
w = torch.randn(8, 3)
Y = (X @ w).argmax(1)


def make(a, b, shuffle):
    return DataLoader(TensorDataset(X[a:b], Y[a:b]), batch_size=20, shuffle=shuffle)


train_loader = make(0, 200, True)
eval_loader = make(0, 200, False)
val_loader = make(200, 300, False)
x, y = next(iter(val_loader))
print(x.shape, y[:3])
for x, y in eval_loader:
    break
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 3e-3)


def acc(l):
    net.eval()
    c = n = 0
    with torch.no_grad():
        for x, y in l:
            c += (net(x).argmax(1) == y).sum().item()
            n += len(y)
    return c / n


for ep in range(8):
    net.train()
    for x, y in train_loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(ep, "train", acc(eval_loader), "val", acc(val_loader))
