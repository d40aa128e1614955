"""Divergences from targets of many forms, and comparisons in losses that keep their gradient."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
points = torch.randn(600, 6)
goals = 2 * points @ torch.randn(6, 5)


def train(loss_of):
    net = nn.Linear(6, 5)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(3):
        for rows in torch.randperm(600).split(50):
            optimizer.zero_grad()
            loss = loss_of(net(points[rows]), goals[rows])
            loss.backward()
            optimizer.step()


def energies(out, goal):
    wanted = (goal > 0).float()
    gap = (out - goal).abs()
    robust = torch.where(gap < 1, 0.5 * gap**2, gap - 0.5).mean()
    hard = (out > 0).float()
    through = out.sigmoid() + (hard - out.sigmoid()).detach()
    overlap = 1 - 2 * (through * wanted).sum() / (through.sum() + wanted.sum() + 1)
    sparse = (out * (out.abs() > 0.1)).square().mean()
    loss = robust + overlap + 0.01 * sparse
    return loss + 0.1 * F.binary_cross_entropy_with_logits(out, wanted)


def balance(out, goal):
    gates = out.softmax(1)
    share = F.one_hot(gates.argmax(1), 5).float().mean(0)
    spread = 5 * (share * gates.mean(0)).sum()
    fit = F.cross_entropy(out, goal.argmax(1))
    loss = fit + 0.01 * spread
    return loss


train(lambda out, goal: F.kl_div(out.log_softmax(1), goal.softmax(1), reduction="batchmean"))
train(lambda out, goal: F.kl_div(out.log_softmax(1), goal.log_softmax(1), reduction="batchmean", log_target=True))
train(lambda out, goal: nn.KLDivLoss(reduction="sum")(out.log_softmax(1), F.one_hot(goal.argmax(1), 5).float()))
train(lambda out, goal: F.kl_div(out.log_softmax(1), 3 * goal.relu(), reduction="mean"))
train(lambda out, goal: F.kl_div(out.log_softmax(0), goal.softmax(0)) * 4)
train(energies)
train(balance)
