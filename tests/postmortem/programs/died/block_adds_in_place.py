# says: `h`, an output of sigmoid, was overwritten
# says: write `h = h + x`
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)

    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        h += x  # related
        return self.b(h)

net = nn.Sequential(Block(), Block())
loss = net(torch.randn(4, 8)).pow(2).mean()
loss.backward()  # died: modified-in-place
