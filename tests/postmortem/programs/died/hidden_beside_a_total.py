# says: `net.state` carries the graph of the previous call
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.state = torch.zeros(2, 4)

    def forward(self, x):
        self.state = self.cell(x, self.state)  # related
        return self.state


net = Memory()
total = torch.zeros(())
for x in torch.randn(5, 2, 4):
    loss = net(x).mean()
    total = total + loss
    loss.backward()  # died: graph-freed
