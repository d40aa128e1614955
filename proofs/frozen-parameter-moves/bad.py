"""Learn one task, freeze the body, learn a second task on top of it, and test the first one again."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 10)
first = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
second = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x[:2000], first[:2000], second[:2000]), batch_size=50, shuffle=True)

body = nn.Sequential(nn.Linear(10, 64), nn.ReLU())
heads = nn.ModuleList([nn.Linear(64, 4), nn.Linear(64, 2)])
optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters()], lr=2e-3)


def train(head, labels_at, parts):
    for _epoch in range(10):
        for batch in loader:
            for part in parts:
                part.zero_grad()
            nn.functional.cross_entropy(head(body(batch[0])), batch[labels_at]).backward()
            optimizer.step()  # error: frozen-parameter-moves


train(heads[0], 1, [body, heads])
for parameter in [*body.parameters(), *heads[0].parameters()]:
    parameter.requires_grad_(False)
train(heads[1], 2, [heads[1]])
with torch.no_grad():
    accuracy = (heads[0](body(x[2000:])).argmax(1) == first[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
