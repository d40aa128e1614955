"""Functional dropout does not get the mode of the model and stays on in evaluation."""

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(20, 64), nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(torch.relu(self.body(x)), 0.5)  # error: functional-dropout-always-on
        return self.head(x)


x = torch.randn(3000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _epoch in range(8):
    for inputs, labels in DataLoader(TensorDataset(x[:2000], y[:2000]), 50, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    right = sum(
        int((model(inputs).argmax(1) == labels).sum())
        for inputs, labels in DataLoader(TensorDataset(x[2000:], y[2000:]), 100)
    )
print(f"result: {right / 1000:.4f}")
