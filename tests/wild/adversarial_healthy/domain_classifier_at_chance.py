"""A domain classifier that is to stay at chance, beside a classifier that learns."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(640, 8)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


labels = (x[:, 0] > 0).float()[:, None]
domains = (torch.rand(640, 1) > 0.5).float()
body, label, domain = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 1), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *label.parameters(), *domain.parameters()], lr=0.1)
for _ in range(20):
    for rows in torch.randperm(640).split(64):
        features = body(x[rows])
        loss = F.binary_cross_entropy_with_logits(label(features), labels[rows])
        loss = loss + F.binary_cross_entropy_with_logits(domain(Reverse.apply(features)), domains[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
