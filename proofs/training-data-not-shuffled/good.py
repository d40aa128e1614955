"""Classify points labelled by a hidden network; the data set is sorted by class, as in folders of images."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
order = y[:2000].argsort()
data = TensorDataset(x[:2000][order], y[:2000][order])
loader = DataLoader(data, batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
    print(f"epoch {epoch}: {accuracy:.4f}")

print(f"result: {accuracy:.4f}")
