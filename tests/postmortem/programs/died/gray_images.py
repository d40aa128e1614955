# says: `net.conv1` takes 3 channels and was given 1
# says: in_channels=1
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3)  # related

    def forward(self, x):
        return self.conv1(x)  # died: shapes-do-not-fit


def evaluate(net, loader):
    for images in loader:  # related
        net(images)


evaluate(Net(), [torch.rand(4, 1, 28, 28)])
