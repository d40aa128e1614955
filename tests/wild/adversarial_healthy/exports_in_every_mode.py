"""Exports that are right: in evaluation mode between epochs, without layers that have a mode, of a wrapper, unsaved."""

import io
import tempfile
from pathlib import Path

import torch
from torch import nn


class Probabilities(nn.Module):
    """A wrapper for the export: it is in train mode, and the model within it is not."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x).softmax(1)


def fit(model: nn.Module, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _epoch in range(epochs):
        model.train()
        for rows in torch.randperm(256).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
plain = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 2))
with tempfile.TemporaryDirectory() as folder:
    fit(model, 3)
    model.eval()
    torch.export.save(torch.export.export(model, (x[:8],)), Path(folder) / "first.pt2")
    torch.export.save(torch.export.export(Probabilities(model), (x[:8],)), Path(folder) / "second.pt2")
    torch.jit.trace(model, x[:8]).save(str(Path(folder) / "third.pt"))
    fit(model, 3)
    graph = torch.export.export(model, (x[:32],))  # in train mode, to count its operations
    print(len(list(graph.graph.nodes)))
    fit(plain, 6)
    torch.export.save(torch.export.export(plain, (x[:8],)), Path(folder) / "plain.pt2")
    torch.jit.save(torch.jit.trace(plain, x[:8]), io.BytesIO())
