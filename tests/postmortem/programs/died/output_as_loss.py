# says: `out` is (8, 3)
import torch
from torch import nn


def step(model, x):
    out = model(x)  # related
    out.backward()  # died: loss-not-a-number


step(nn.Linear(4, 3), torch.randn(8, 4))
