"""Digits: how often the class in second place is right, beside the one in first place."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
digits = load_digits()
x, y = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=70, shuffle=True)
test = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=70)
net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _epoch in range(8):
    net.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        optimizer.step()
net.eval()
first = second = 0
with torch.no_grad():
    for a, b in test:
        places = net(a).topk(2, dim=1).indices
        first += (places[:, 0] == b).sum().item()
        second += (places[:, 1] == b).sum().item()
print(f"first {first / 397:.3f}, second {second / 397:.3f}")
