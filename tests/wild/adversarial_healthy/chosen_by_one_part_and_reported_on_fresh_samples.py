"""test_loader chooses, and is read again as a check of the load; the reported figure is that of fresh samples."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def sample(n):
    x = torch.randn(n, 8)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


train_loader = DataLoader(sample(400), 40, shuffle=True)
test_loader = DataLoader(sample(150), 50)
fresh_loader = DataLoader(sample(1000), 100)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 5e-3)


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        acc = sum((net(a).argmax(1) == b).sum().item() for a, b in loader) / len(loader.dataset)
    net.train()
    return acc


best = 0
for epoch in range(12):
    for a, b in train_loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        opt.step()
    acc = evaluate(net, test_loader)
    if acc > best:
        best = acc
        state = copy.deepcopy(net.state_dict())
net.load_state_dict(state)
print("best", best, "again", evaluate(net, test_loader))
print("on fresh samples", evaluate(net, fresh_loader))
