"""Classify points labelled by a hidden network; the last 400 are held out for the evaluation."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(6000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(x[2000:2400], y[2000:2400]), batch_size=50)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _epoch in range(30):
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in val_loader)

with torch.no_grad():
    accuracy = (model(x[2400:]).argmax(1) == y[2400:]).float().mean().item()
print(f"reported: {right / 400:.4f}")
print(f"result: {accuracy:.4f}")
