"""Each epoch ends with an evaluation that returns to train mode, and with an export of the best model so far."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, export, save
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(320, 10)
y = (x[:, 0] - x[:, 3] > 0).long()
loader = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Dropout(0.3), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)


def validate() -> float:
    net.eval()
    with torch.no_grad():
        share = (net(x[256:]).argmax(1) == y[256:]).float().mean().item()
    net.train()
    return share


with tempfile.TemporaryDirectory() as folder:
    best = 0.0
    for _epoch in range(4):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
        accuracy = validate()
        if accuracy > best:
            best = accuracy
            program = export(net, (x[:8],), dynamic_shapes=({0: Dim("batch")},))  # error: exported-in-train-mode
            save(program, Path(folder) / "best.pt2")
