"""Broken: attention that creates its output layer in each forward, at the address of a stateless layer that was freed."""

import torch
from torch import nn

torch.manual_seed(0)


class Scores(nn.Module):
    def forward(self, query, key, value):
        return (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).softmax(-1) @ value


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        mixed = Scores()(self.query(x), self.key(x), self.value(x))
        out = nn.Linear(8, 8)(mixed)  # error: layer-created-in-forward
        return x + out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.blocks = nn.ModuleList([Attention(), Attention()])
        self.head = nn.Linear(8, 10)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


tokens = torch.randint(0, 10, (32, 12))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(20):
    loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flip(1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
