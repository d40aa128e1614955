"""`inplace=True` was meant: the slope of the activation is 1, and the network is linear."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 2)
y = (x[:, 0] * x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 32)
        self.act = nn.LeakyReLU(True)  # error: layer-setting-out-of-range
        self.last = nn.Linear(32, 2)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(40):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print((net(x).argmax(1) == y).float().mean().item())
