import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        mask = torch.zeros(4)
        mask[0] = 1.0
        y = torch.sigmoid(self.fc(x))
        torch.add(y, 1.0, out=None)
        for part in (y.detach(),):
            nn.init.constant_(part, 0.5)
        return y * mask


Net()(torch.randn(2, 4)).sum().backward()
