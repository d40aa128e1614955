"""Broken: the loop over validation batches was copied from the training, and steps the schedule too."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 5)
y = (x[:, 0] > x[:, 1]).long()
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=16)
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.99)
for epoch in range(5):
    net.train()
    for a, b in train:
        opt.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        opt.step()
        sched.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for a, b in val:
            right += (net(a).argmax(1) == b).sum().item()
            sched.step()  # error: scheduler-stepped-twice
    print(epoch, right / 64)
