"""First-order meta-learning: a copy adapts with its optimizer, made for each task."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

learner = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
outer = torch.optim.Adam(learner.parameters(), lr=1e-3)

for iteration in range(1000):
    outer.zero_grad()  # broken[missing-zero-grad]: pass
    tasks = [sample_task() for _ in range(4)]
    for task in tasks:
        fast = copy.deepcopy(learner)
        inner = torch.optim.SGD(fast.parameters(), lr=0.01)
        for x, y in task.support(5):
            inner.zero_grad()
            F.mse_loss(fast(x), y).backward()
            inner.step()
        x, y = task.query()
        gradients = torch.autograd.grad(F.mse_loss(fast(x), y), list(fast.parameters()))
        for param, gradient in zip(learner.parameters(), gradients, strict=True):
            param.grad = gradient / len(tasks) if param.grad is None else param.grad + gradient / len(tasks)
    outer.step()
