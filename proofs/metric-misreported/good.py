"""Count the right predictions of each evaluation."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centres = torch.randn(6, 20)
y = torch.randint(0, 6, (1400,))
x = centres[y] + torch.randn(1400, 20)
train = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=100)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
correct = total = 0
for _epoch in range(8):
    for inputs, labels in train:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    correct = total = 0
    with torch.no_grad():
        for inputs, labels in test:
            correct += (model(inputs).argmax(1) == labels).sum().item()
            total += len(labels)
    accuracy = correct / total
    print(f"{accuracy:.4f}")
with torch.no_grad():
    truth = (model(x[800:]).argmax(1) == y[800:]).float().mean().item()
print(f"result: {abs(accuracy - truth):.4f}")
