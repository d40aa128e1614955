"""Missing targets are NaN, and found by a comparison with themselves."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

n, tasks = 1000, 4
x = torch.randn(n, 12)
y = ((x @ torch.randn(12, tasks)) > 0).float()
y[torch.rand(n, tasks) < 0.3] = float("nan")          # not measured
x_train, x_test, y_train, y_test = x[:700], x[700:], y[:700], y[700:]
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, tasks))
opt = torch.optim.Adam(net.parameters(), 5e-3)

def masked_bce(logits, target):
    known = target == target
    return F.binary_cross_entropy_with_logits(logits[known], target[known])

def accuracy(model, x, target):
    model.eval()
    with torch.no_grad():
        decided = (model(x) > 0).float()
    model.train()
    correct = (decided == target)[target == target]
    acc = correct.float().mean().item()
    return acc

for epoch in range(6):
    for i in torch.randperm(700).split(50):
        opt.zero_grad()
        masked_bce(net(x_train[i]), y_train[i]).backward()
        opt.step()
    print(epoch, round(accuracy(net, x_test, y_test), 4))
