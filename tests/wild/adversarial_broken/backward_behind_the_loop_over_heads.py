"""Three tasks, a head for each; the loss of the last one is differentiated."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
targets = [(x[:, k] > 0).long() for k in range(3)]
trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
heads = nn.ModuleList([nn.Linear(32, 2) for _ in targets])
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)


def train_step(rows):
    optimizer.zero_grad()
    features = trunk(x[rows])
    for head, target in zip(heads, targets):
        loss = nn.functional.cross_entropy(head(features), target[rows])  # error: loss-never-differentiated
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(50):
    last = train_step(torch.randint(0, 512, (64,)))
print(last)
