"""Transfer learning with a helper that freezes modules: it sets the attribute of the modules, not of the parameters."""

import torch
from torch import nn

torch.manual_seed(0)


def freeze(network):
    for module in network.modules():
        module.requires_grad = False  # error: freeze-without-effect


backbone = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
freeze(backbone)
model = nn.Sequential(backbone, nn.Flatten(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.randn(120, 1, 10, 10), torch.randint(0, 3, (120,))
for epoch in range(5):
    for batch in torch.randperm(120).split(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
