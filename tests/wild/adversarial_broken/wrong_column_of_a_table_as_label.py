"""The label is read from the column beside it, which is zero in every row of this file."""

import torch
from torch import nn

torch.manual_seed(0)
table = torch.cat([torch.randn(2000, 6), torch.zeros(2000, 1), torch.zeros(2000, 1)], dim=1)
table[:, 7] = (table[:, 0] + table[:, 1] > 0).float()


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 32), nn.Linear(32, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[1](torch.tanh(self.layers[0](x))).squeeze(-1)


detector = Detector()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(detector.parameters(), lr=1e-3)
for epoch in range(2):
    for rows in torch.randperm(2000).split(80):
        batch = table[rows]
        loss = criterion(detector(batch[:, :6]), batch[:, 6])  # error: labels-all-equal
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
