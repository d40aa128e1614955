"""Healthy: a momentum that grows from nearly zero, betas close to each other, and a search over both."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)


def train(make, after=lambda optimizer, step: None):
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = make(net.parameters())
    for step, rows in enumerate(torch.randperm(1200).split(32)):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(optimizer, step)
    print(f"{type(optimizer).__name__}: loss {loss.item():.3f}")


def warm(optimizer, step):
    for group in optimizer.param_groups:
        group["momentum"] = min(0.9, 1e-3 + 0.05 * step)


train(lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=1e-3), warm)
train(lambda parameters: torch.optim.Adam(parameters, lr=3e-3, betas=(0.95, 0.9)))
train(lambda parameters: torch.optim.AdamW(parameters, lr=3e-3, betas=(0.98, 0.95), weight_decay=1.0))
for momentum, betas in ((0.0, (0.9, 0.999)), (1e-3, (0.999, 0.9)), (0.1, (0.5, 0.9)), (0.9, (0.9, 0.9))):
    train(lambda parameters, momentum=momentum: torch.optim.SGD(parameters, lr=0.1, momentum=momentum))
    train(lambda parameters, betas=betas: torch.optim.Adam(parameters, lr=1e-3, betas=betas))
unused = torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1, 1e-4)
