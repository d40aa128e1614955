"""The weight of an auxiliary loss is a division of whole numbers: it is 0, and its head is trained by nothing."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.main = nn.Linear(32, 3)
        self.rotation = nn.Linear(32, 4)

    def forward(self, x):
        hidden = self.trunk(x)
        auxiliary = self.rotation(hidden)  # error: parameters-without-effect
        return self.main(hidden), auxiliary


def losses(net, x, y, turned):
    scores, turns = net(x)
    return nn.functional.cross_entropy(scores, y), nn.functional.cross_entropy(turns, turned)


def train(net, steps=60, weight=1 // 4):
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(steps):
        x = torch.randn(48, 8)
        main, auxiliary = losses(net, x, x[:, :3].argmax(1), x[:, 3:7].argmax(1))
        optimizer.zero_grad()
        (main + weight * auxiliary).backward()
        optimizer.step()
    return main.item(), auxiliary.item()


torch.manual_seed(3)
print("main %.3f, rotation %.3f" % train(Net()))
