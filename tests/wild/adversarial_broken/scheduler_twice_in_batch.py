"""Broken: the schedule is stepped by the function that makes a step, and again in the loop over batches."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 5)
loader = DataLoader(TensorDataset(x, x[:, :1] * x[:, 1:2]), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=20, gamma=0.5)


def train_step(a, b):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(a), b)
    loss.backward()
    opt.step()
    sched.step()
    return loss.item()


for epoch in range(6):
    for a, b in loader:
        train_step(a, b)
        sched.step()  # error: scheduler-stepped-twice
