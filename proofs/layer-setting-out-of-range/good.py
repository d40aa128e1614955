"""Classify points by a smooth rule of ten inputs, with normalised layers."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)


def block(inputs: int, outputs: int) -> nn.Sequential:
    norm = nn.BatchNorm1d(outputs)
    return nn.Sequential(nn.Linear(inputs, outputs), norm, nn.ReLU())


model = nn.Sequential(block(10, 64), block(64, 64), block(64, 64), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for _epoch in range(8):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
