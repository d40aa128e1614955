"""Freezing the first layers by an attribute of each module, beside parameters that are frozen in the right way."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.head = nn.Linear(8, 2)
        for p in self.embed.parameters():
            p.requires_grad = False
        for layer in self.layers[:2]:
            layer.requires_grad = False  # error: freeze-without-effect

    def forward(self, tokens):
        h = self.embed(tokens).mean(1)
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.head(h)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
tokens, labels = torch.randint(0, 50, (64, 5)), torch.randint(0, 2, (64,))
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(tokens), labels).backward()
    optimizer.step()
