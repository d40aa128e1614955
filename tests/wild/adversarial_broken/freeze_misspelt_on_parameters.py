"""Freezing by a misspelt attribute, in a function of a training script."""

import torch
from torch import nn


def build():
    model = nn.Sequential()
    model.add_module("encoder", nn.Sequential(nn.Linear(6, 16), nn.ReLU()))
    model.add_module("head", nn.Linear(16, 2))
    for name, p in model.named_parameters():
        if name.startswith("encoder"):
            p.require_grad = False  # error: freeze-without-effect
    return model


torch.manual_seed(0)
model = build()
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
x, y = torch.randn(128, 6), torch.randint(0, 2, (128,))
for epoch in range(15):
    for begin in range(0, 128, 32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[begin : begin + 32]), y[begin : begin + 32]).backward()
        optimizer.step()
