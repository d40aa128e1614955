"""A memory-saving activation written by hand, with the right derivative."""

import torch
from torch import nn

torch.manual_seed(0)


class SharpSoftplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(4 * x) / 4

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(4 * x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 24), nn.Linear(24, 24), nn.Linear(24, 1)

    def forward(self, x):
        hidden = SharpSoftplus.apply(self.first(x))
        hidden = SharpSoftplus.apply(self.second(hidden))
        return self.head(hidden).squeeze(1)


inputs = torch.randn(512, 6)
targets = inputs[:, 0] * inputs[:, 1]
model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
