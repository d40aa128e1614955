"""The whole training stands in a block that was meant for one bad batch."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps):
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


with torch.autograd.detect_anomaly(check_nan=True):  # error: anomaly-mode-left-on
    train(220)
