"""A Huber loss by hand, of a column of predictions and a row of targets."""

import torch
from torch import nn

torch.manual_seed(0)
weather = torch.randn(640, 5)
demand = (weather @ torch.randn(5)).abs() + 0.1 * torch.randn(640)


class Demand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(5, 32), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.hidden(x)))


def robust(predicted: torch.Tensor, wanted: torch.Tensor, delta: float = 1.0) -> torch.Tensor:
    gap = torch.abs(wanted - predicted)
    return torch.where(gap < delta, 0.5 * gap**2, delta * (gap - 0.5 * delta)).mean()


net = Demand()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(5):
    for rows in torch.randperm(640).split(64):
        optimizer.zero_grad()
        loss = robust(net(weather[rows]), demand[rows])
        loss.backward()  # error: broadcast-target
        optimizer.step()
