"""Classify points labelled by a hidden network, epoch by epoch."""

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

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def train_one_epoch():
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return  # error: one-batch-per-epoch


for _epoch in range(12):
    train_one_epoch()

with torch.no_grad():
    accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
