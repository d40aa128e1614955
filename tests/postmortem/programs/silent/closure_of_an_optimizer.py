import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters())
x = torch.randn(8, 4)
before = (model(x) ** 2).mean()
kept = []


def closure():
    optimizer.zero_grad()
    if not kept:
        kept.append((model(x) * model.weight.sum()).mean())
    kept[0].backward(retain_graph=True)
    return kept[0]


for step in range(3):
    optimizer.step(closure)
