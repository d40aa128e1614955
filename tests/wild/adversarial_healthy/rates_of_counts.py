"""Rates of counts in every right form: logarithms, rates with their flag, by hand, and counts that begin at one."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.rand(900, 3)
calls = torch.poisson(torch.exp(1.5 * x[:, 0] - x[:, 1]))[:, None]


def train(loss_of, counts):
    net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(6):
        for rows in torch.randperm(700).split(50):
            loss = loss_of(net(x[rows]), counts[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())


train(nn.PoissonNLLLoss(), calls)
train(lambda out, y: F.poisson_nll_loss(F.softplus(out), y, log_input=False), calls)
train(lambda out, y: F.poisson_nll_loss(out.exp(), y, log_input=False, full=True), calls)
train(lambda out, y: (out.exp() - y * out).mean() + 1e-3 * out.square().mean(), calls)
train(lambda out, y: F.poisson_nll_loss(F.softplus(out), y), calls + 1)
