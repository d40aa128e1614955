# says: `self.gate` was overwritten after the forward pass had saved it
# says: write into it after the backward pass
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Parameter(torch.ones(8))

    def forward(self, x):
        h = self.fc(x)
        out = h * self.gate
        h = h + x
        with torch.no_grad():
            self.gate.clamp_(0, 2)  # related
        return out + h


net = Gated()
net(torch.randn(4, 8)).sum().backward()  # died: modified-in-place
