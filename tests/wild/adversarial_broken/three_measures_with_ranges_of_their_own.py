"""A function brings three measures to the range 0 to 1, for the training and for the validation alone."""

import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
rng = np.random.default_rng(0)
n = 600
raw = np.stack([rng.gamma(2.0, 30.0, n), rng.normal(20, 4, n), rng.uniform(0, 500, n)], 1)
target = raw[:, 0] * 0.02 - raw[:, 1] * 0.1 + raw[:, 2] * 0.004 + rng.normal(0, 0.1, n)


def scale(a):
    return (a - a.min(axis=0)) / (a.max(axis=0) - a.min(axis=0))


tr, te = raw[:450], raw[450:]
x_train = torch.from_numpy(scale(tr)).float()
x_val = torch.from_numpy(scale(te)).float()  # error: scaled-with-evaluation-data
y_train = torch.from_numpy(target[:450]).float()
y_val = torch.from_numpy(target[450:]).float()
net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(300):
    loss = ((net(x_train)[:, 0] - y_train) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0:
        with torch.no_grad():
            print(it, loss.item(), ((net(x_val)[:, 0] - y_val) ** 2).mean().item())
