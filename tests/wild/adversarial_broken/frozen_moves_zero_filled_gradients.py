"""A body frozen after a warm start; gradients are filled with zeros, so decay and momentum go on."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = torch.randint(0, 3, (256,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-3)
for step in range(60):
    if step == 20:
        net.body.requires_grad_(False)
    rows = torch.randint(0, 256, (32,))
    opt.zero_grad(set_to_none=False)
    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()  # error: frozen-parameter-moves
