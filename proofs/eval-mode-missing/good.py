"""Classify points labelled by a hidden network, with dropout in the model."""

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
val_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=250)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.5))
model.extend([nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4)])
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = model(inputs)
            correct += (outputs.argmax(1) == labels).sum().item()
    accuracy = correct / 1000
    print(f"epoch {epoch}: {accuracy:.4f}")

print(f"result: {accuracy:.4f}")
