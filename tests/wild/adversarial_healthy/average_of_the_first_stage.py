"""An average follows in the first stage, is evaluated, and stays as the teacher of the second; so does torch's own."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
ema, swa = copy.deepcopy(net).requires_grad_(False), AveragedModel(net)
x = torch.randn(400, 6)
y = x[:, :1] - x[:, 1:2]


def stage(rate, steps, teacher=None):
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    for _ in range(steps):
        rows = torch.randint(400, (32,))
        loss = F.mse_loss(net(x[rows]), y[rows])
        if teacher is not None:
            with torch.no_grad():
                wanted = teacher(x[rows])
            loss = loss + 0.1 * F.mse_loss(net(x[rows] + 0.1 * torch.randn(32, 6)), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if teacher is None:
            swa.update_parameters(net)
            with torch.no_grad():
                for average, weight in zip(ema.parameters(), net.parameters()):
                    average.lerp_(weight, 0.1)


@torch.no_grad()
def errors():
    return [round(F.mse_loss(model(x), y).item(), 3) for model in (net, ema, swa)]


stage(1e-2, 60)
print(errors())
stage(1e-3, 80, ema)
print(errors())
