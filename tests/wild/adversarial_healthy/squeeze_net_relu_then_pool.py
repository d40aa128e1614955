"""SqueezeNet: the last convolution has a ReLU, and its maps are averaged before cross entropy."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(96, 3, 8, 8), torch.randint(0, 4, (96,))
net = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Dropout(0.2), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(96).split(16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
