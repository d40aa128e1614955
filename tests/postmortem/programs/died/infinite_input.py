# says: `x` holds 12 of 12 values that are not finite, before any gradient
import torch
from torch import nn


def train(model, batches):
    with torch.autograd.detect_anomaly():
        for values in batches:
            x = values / values.abs().amin()  # related
            loss = model(x).pow(2).mean()
            loss.backward()  # died: nan-in-backward


batch = torch.ones(3, 4)
batch[1, 2] = 0.0
train(nn.Linear(4, 2), [batch])
