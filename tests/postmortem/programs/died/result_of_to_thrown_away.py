# says: returns a copy that is not assigned: `x` stays on cpu
# says: assign the copy: `x = x.to(device)`
import torch
from torch import nn


def train(device):
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU()).to(device)  # related
    x = torch.randn(8, 4)  # related
    x.to(device)  # related
    return model(x)  # died: different-devices


train("meta")
