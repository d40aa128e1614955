"""Classify points labelled by a hidden network with two hidden layers."""

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


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 64)
        self.head = nn.Linear(64, 4)

    def forward(self, inputs):
        out = torch.relu(self.first(inputs))
        out = torch.relu(nn.Linear(64, 64)(out))  # error: layer-created-in-forward
        return self.head(out)


model = Network()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print(f"result: {(model(x[2000:]).argmax(1) == y[2000:]).float().mean():.4f}")
