# says: put the layers of `model.layers` into an `nn.ModuleList`
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 2)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # died: different-devices
        return x


model = Net().to("meta")
inputs = torch.randn(2, 4).to("meta")
model(inputs)
