"""Classify points labelled by a hidden network with four hidden layers."""

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
        self.first = nn.Linear(10, 48)
        self.hidden = [nn.Linear(48, 48) for _ in range(3)]
        self.head = nn.Linear(48, 4)

    def forward(self, inputs):
        out = torch.relu(self.first(inputs))
        for layer in self.hidden:
            out = torch.relu(layer(out))  # error: layers-in-plain-container
        return self.head(out)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _epoch in range(12):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print(f"result: {(model(x[2000:]).argmax(1) == y[2000:]).float().mean():.4f}")
