"""Segmentation: Softmax2d at the end of the net, cross entropy on (N, C, H, W)."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 1), nn.Softmax2d())
optim = torch.optim.SGD(net.parameters(), lr=0.1)


def step(images, masks):
    optim.zero_grad()
    probabilities = net(images)
    loss = F.cross_entropy(probabilities, masks)  # error: softmax-before-cross-entropy
    loss.backward()
    optim.step()
    return loss.item()


for i in range(25):
    value = step(torch.randn(4, 3, 10, 10), torch.randint(0, 3, (4, 10, 10)))
print(value)
