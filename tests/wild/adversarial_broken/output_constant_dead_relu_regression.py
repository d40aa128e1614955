"""A regression on raw sensor values in the thousands: the first steps of SGD kill the ReLUs of the second layer."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
X = 2000 + 900 * torch.randn(512, 6)
Y = (X[:, :1] - X[:, 1:2]) / 900 + 3


class Regressor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 32), nn.Linear(32, 16), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.second(F.relu(self.first(x)))))


model = Regressor()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _epoch in range(16):
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        predicted = model(X[rows])  # error: output-ignores-input
        loss = F.huber_loss(predicted, Y[rows])
        loss.backward()
        optimizer.step()
