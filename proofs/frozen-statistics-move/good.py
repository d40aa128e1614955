"""Train a new head on a frozen backbone, and use the old head on the data of before."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(2000, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
backbone = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU())
old, new = nn.Linear(64, 4), nn.Linear(64, 2)


def fit(net, inputs, labels, steps):
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=5e-3)
    for _step in range(steps):
        rows = torch.randint(0, len(inputs), (32,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        optimizer.step()


fit(nn.Sequential(backbone, old), x[:1000], y[:1000], 200)
backbone.requires_grad_(False)
net = nn.Sequential(backbone, new)
net.train()
backbone.eval()
other = 4 + 3 * torch.randn(600, 10)
fit(net, other, (other[:, 0] > 4).long(), 200)
net.eval()
accuracy = (old(backbone(x[1000:])).argmax(1) == y[1000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
