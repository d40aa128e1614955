"""A regression with batch normalisation; a class traces its network after the last epoch, and saves the trace."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x)).squeeze(-1)


class Project:
    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        self.file = folder / "network.pt"
        self.x = torch.randn(256, 6)
        self.y = torch.sin(self.x[:, 0]) + self.x[:, 1]
        self.network = Network()
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.01)

    def fit(self) -> None:
        for _epoch in range(8):
            for rows in torch.randperm(256).split(32):
                loss = nn.functional.mse_loss(self.network(self.x[rows]), self.y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def write(self) -> None:
        trace = torch.jit.trace(self.network, self.x[:32])  # error: exported-in-train-mode
        trace.save(str(self.file))


with tempfile.TemporaryDirectory() as folder:
    project = Project(Path(folder))
    project.fit()
    project.write()
