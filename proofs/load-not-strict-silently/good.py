"""Fine-tune a pretrained network on few samples."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(3000, 20)
y = (x @ torch.randn(20, 12)).relu().matmul(torch.randn(12, 8)).argmax(1)


def build():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))


def train(model, first, last, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(last - first).split(50):
            optimizer.zero_grad()
            F.cross_entropy(model(x[first + rows]), y[first + rows]).backward()
            optimizer.step()


pretrained = build()
train(pretrained, 0, 2000, 30)
state = {f"module.{name}": value for name, value in pretrained.state_dict().items()}
model = build()
model.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
train(model, 2000, 2100, 10)
with torch.no_grad():
    accuracy = (model(x[2100:]).argmax(1) == y[2100:]).float().mean().item()
print(f"result: {accuracy:.4f}")
